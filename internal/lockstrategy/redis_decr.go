package lockstrategy

import (
	"context"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

// RedisDecr keeps a copy of the stock in Redis and takes a buyer's units there with one DECRBY.
//
//   - Summary: DECR in Redis admits a buyer; then insert + unconditional update; INCR if there is no sale
//   - Guarantees: The counter admits no more buyers than it had units, while Redis keeps the counter and no
//     other strategy sells.
//   - Breaks when: a crash after DECR or during COMMIT leaks a unit; a lost counter in Redis oversells
//   - How it breaks: A buyer takes the last unit from the counter (DECRBY) and crashes: the database
//     still has the unit, but no buyer can buy it (leaked). The same happens if the database crashes during the
//     COMMIT. Or Redis loses the counter after A was admitted: B copies the stock from the database, where
//     A has not written yet, and is admitted too (oversold). Or Redis loses the counter between SETNX and
//     DECRBY. Then DECRBY creates a counter below zero (leaked). A buyer subtracts its units even if too few are
//     left, and adds them again; in between, a buyer that wants fewer may be answered "sold out".
//   - Cost: A buyer that comes too late costs one round trip to Redis. An admitted buyer locks the row from its
//     update to the commit.
//   - Source: Redis documentation, INCR, "Pattern: Counter", used in reverse; many flash sale tutorials use it
//     as a stock
type RedisDecr struct{ redisCounter }

// NewRedisDecr returns the strategy. It needs the database and a Redis.
func NewRedisDecr(d Deps) *RedisDecr { return &RedisDecr{newRedisCounter(d, "redis-decr")} }

// Buy implements purchase.Strategy.
func (s *RedisDecr) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return s.sell(ctx, o, s.admit)
}

// admit takes the units from the counter. Between its two commands, Redis may lose the counter.
func (s *RedisDecr) admit(ctx context.Context, o purchase.Order) (left int64, _ error) {
	if _, err := s.readOrLoad(ctx, o.Product); err != nil {
		return 0, err
	}
	left, err := s.deps.Redis.DecrBy(ctx, s.key(o.Product), o.Amount).Result()
	if err != nil {
		return 0, deps.FailedFor(ctx, deps.Redis, err) // Redis may have taken the units, which are then leaked
	}
	if left < 0 {
		return 0, errors.Join(fmt.Errorf("%w: %d left", purchase.ErrSoldOut, left+o.Amount), s.putBack(ctx, o))
	}
	return left, nil
}

func redisDecrEntry() Entry {
	return Entry{
		Name: "redis-decr", Family: redisStock,
		Needs: []Need{NeedsRedis},
		New:   func(d Deps) purchase.Strategy { return NewRedisDecr(d) },
		Traits: Traits{
			Witnesses: []WitnessSearch{{Flags: "--events crash --bound 1"}, {Suffix: "-forget", Flags: "--events forget --bound 1"}},
			// In an exploration (a search of all interleavings), Redis may lose the counter between a
			// buyer's first two commands. The counter then refuses every buyer.
			ExploredAs: promise.Promise{promise.ExploreForget: verdict.Leaked},
		},
	}.admitsRightly()
}
