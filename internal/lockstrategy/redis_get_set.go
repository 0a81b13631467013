package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

// RedisGetSet computes the stock in the shop and keeps it in Redis.
//
//   - Summary: GET the stock in Redis, compute, SET it; then insert + unconditional update; no lock
//   - Guarantees: It guarantees nothing.
//   - Breaks when: two buyers buy at the same time
//   - How it breaks: Two buyers GET the same stock, and each SETs that stock minus one. Redis runs one
//     command at a time, but another buyer's command may come between the GET and the SET. Both buyers are
//     admitted for the same unit, and the database does not check that.
//   - Cost: A buyer that comes too late costs one round trip to Redis. An admitted buyer costs two, and a
//     transaction of two writes. Buyers wait for each other only in the database.
//   - Source: Berenson et al., "A Critique of ANSI SQL Isolation Levels", SIGMOD 1995, section 4.1 (P4, the lost
//     update); Redis documentation, "Transactions", "Optimistic locking using check-and-set" (the same flaw)
type RedisGetSet struct{ redisCounter }

// NewRedisGetSet returns the strategy. It needs the database and a Redis.
func NewRedisGetSet(d Deps) *RedisGetSet {
	return &RedisGetSet{newRedisCounter(d, "redis-get-set")}
}

// Buy implements purchase.Strategy.
func (s *RedisGetSet) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return s.sell(ctx, o, s.admit)
}

// admit writes a stock that it computes from the counter's value. Another buyer may change the counter
// between this read and the write.
func (s *RedisGetSet) admit(ctx context.Context, o purchase.Order) (left int64, _ error) {
	units, err := s.readOrLoad(ctx, o.Product)
	if err != nil {
		return 0, err
	}
	if left, err = rest(units, o); err != nil {
		return 0, err
	}
	return left, deps.FailedFor(ctx, deps.Redis, s.deps.Redis.Set(ctx, s.key(o.Product), left, 0).Err())
}

func redisGetSetEntry() Entry {
	return Entry{
		Name: "redis-get-set", Family: redisStock,
		Needs: []Need{NeedsRedis},
		New:   func(d Deps) purchase.Strategy { return NewRedisGetSet(d) },
		Traits: Traits{
			AdmitsFirst: true,
			CaughtBy: map[string]string{
				"Rush": wantSoldTwice, "TwoProcesses": wantSoldTwice, "MixedUnits": wantSoldTwice,
				"StockCrash": "1 left that no buyer can buy", "StockForgotten": "sold twice",
			},
		},
	}.holdsExcept(promise.BreaksFrom(promise.Rush)).withPromiseAboveReadCommitted(promise.Crowds(), "")
}
