package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// byChance says why the catalogue promises nothing under a fault that hits a buyer in its COMMIT only
// by chance.
const byChance = "after a COMMIT with an unknown outcome the unit is not returned to the counter; whether such a COMMIT was in progress is chance"

// RedisDecr keeps a copy of the stock in Redis.
//
//   - Summary: DECR in Redis admits a buyer; then insert + unconditional update; INCR if there is no sale
//   - Guarantees: The counter admits no more buyers than it had units, while Redis keeps the counter and no
//     other strategy sells.
//   - Breaks when: a crash after DECR, or a COMMIT cut off, leaks; Redis loses the counter: oversold
//   - How it breaks: A buyer crashes after its DECRBY. Step 1: A takes the last unit from the counter. Step 2: A
//     crashes. The unit is in the database and no buyer can buy it (leaked). Or the database crashes during A's
//     COMMIT: its outcome is unknown, and the unit is not returned (leaked). Or Redis loses the counter. Step 1:
//     A is admitted. Step 2: the counter is lost. Step 3: B copies the stock from the database, where A has not
//     written yet, and is admitted too (oversold). Or the counter is lost between SETNX and DECRBY, which then
//     creates one below zero: sold out permanently (leaked). A buyer of
//     many units takes the last few from the counter, which makes it negative, and returns them. Meanwhile a
//     buyer of few units is answered sold out, although the next one can buy them. A repeated Idempotency-Key
//     whose first request is running in another process may be answered sold out.
//   - Cost: A buyer that comes too late costs one round trip to Redis. An admitted buyer locks the row from its
//     update to the commit.
//   - Source: Redis documentation, INCR, "Pattern: Counter", used in reverse; many flash sale tutorials use it
//     as a stock
type RedisDecr struct {
	deps    Deps
	retrier waiting.Retrier
}

// NewRedisDecr returns the strategy. It needs the database and a Redis.
func NewRedisDecr(d Deps) *RedisDecr { return &RedisDecr{d, waiting.NewRetrier(d, waiting.AnyRounds)} }

func redisDecrKey(product string) string { return "shop:stock:redis-decr:{" + product + "}" }

// Buy implements purchase.Strategy.
func (s *RedisDecr) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	if err := o.Check(); err != nil { // the counter would accept an invalid amount
		return purchase.Receipt{}, err
	}
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	left, err := s.admit(ctx, o)
	if err != nil {
		return purchase.Receipt{}, err
	}
	receipt := purchase.NewReceipt(o, "redis-decr", left, s.deps.Now().Sub(start))
	err = s.retrier.RetryRefused(ctx, o.Product, func(ctx context.Context, _ time.Time) error {
		return purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
			if err := purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt); err != nil {
				return err
			}
			return purchase.DatabaseError(ctx, "take the units", product.Take(tx, o.Product, o.Amount))
		})
	})
	if err != nil {
		if !errors.Is(err, purchase.ErrUnknownOutcome) {
			err = errors.Join(err, s.putBack(ctx, o))
		}
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

// admit takes the units from the counter. If there is no counter, it first copies the stock from
// the database.
func (s *RedisDecr) admit(ctx context.Context, o purchase.Order) (left int64, _ error) {
	key := redisDecrKey(o.Product)
	err := s.deps.Redis.Get(ctx, key).Err()
	if errors.Is(err, redis.Nil) {
		p, notThere := product.ByName(s.deps.DB.WithContext(ctx), o.Product)
		if notThere != nil {
			return 0, purchase.DatabaseError(ctx, "read the stock", notThere)
		}
		err = s.deps.Redis.SetNX(ctx, key, p.Amount, 0).Err() // another buyer may sell in between: the second way to break
	}
	if err != nil {
		return 0, deps.FailedFor(ctx, deps.Redis, err)
	}
	left, err = s.deps.Redis.DecrBy(ctx, key, o.Amount).Result()
	if err != nil {
		return 0, deps.FailedFor(ctx, deps.Redis, err) // the units may have been taken: leaked
	}
	if left < 0 {
		return 0, errors.Join(fmt.Errorf("%w: %d left", purchase.ErrSoldOut, left+o.Amount), s.putBack(ctx, o))
	}
	return left, nil
}

// putBack goes on when the buyer disconnects. Otherwise the units would be lost.
func (s *RedisDecr) putBack(ctx context.Context, o purchase.Order) error {
	ctx, cancel := s.deps.Releasing(ctx)
	defer cancel()
	return deps.Failed(deps.Redis, s.deps.Redis.IncrBy(ctx, redisDecrKey(o.Product), o.Amount).Err())
}

// Reset forgets the counter; the next buyer copies the stock again.
func (s *RedisDecr) Reset(ctx context.Context, product string) error {
	return deps.Failed(deps.Redis, s.deps.Redis.Del(ctx, redisDecrKey(product)).Err())
}

// KeepsStock implements purchase.StockKeeper.
func (s *RedisDecr) KeepsStock() {}

func redisDecrEntry() Entry {
	return Entry{
		Name: "redis-decr", Family: redisStock,
		Needs: []Need{NeedsRedis},
		NoPromise: map[promise.Condition]string{
			promise.DBFailover: byChance, promise.PoolerRestart: byChance,
		},
		New: func(d Deps) purchase.Strategy { return NewRedisDecr(d) },
		Traits: Traits{
			Witnesses:   []Witness{{Flags: "--events crash --bound 1"}, {Suffix: "-forget", Flags: "--events forget --bound 1"}},
			AdmitsFirst: true,
			// In an exploration, the loss of the counter may come between the first two
			// commands. The counter then refuses every buyer.
			ExploredAs: promise.Promise{promise.ExploreForget: verdict.Leaked},
			CaughtBy:   map[string]string{"StockCrash": "1 left that no buyer can buy", "StockForgotten": "sold twice"},
		},
	}.holdsExcept(promise.Promise{
		promise.Crash:         verdict.Leaked,
		promise.RedisRestart:  verdict.Oversold,
		promise.RedisFailover: verdict.Oversold,
		promise.DBKill:        verdict.Leaked, // units whose COMMIT has an unknown fate are not put back
		promise.DBFailover:    "",
		promise.PoolerRestart: "",
	}).withPromiseAboveReadCommitted(promise.Crowds(), "") // a refused buyer returns its units after other buyers were told "sold out"
}
