package lockstrategy

import (
	"context"
	"errors"
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

// twoCounters says why the catalogue promises nothing when a Redis replica is elected while the old primary
// still runs.
const twoCounters = "each side of the partition has a counter; whether the elected replica had counted the last sales of the old primary is chance"

// A redisCounter keeps a copy of each product's stock in Redis. A strategy takes a buyer's units from this
// copy. redisCounter then writes the sale to the database, which does not check the stock. It is safe for
// concurrent use.
type redisCounter struct {
	deps    Deps
	name    string // the strategy's name
	retrier waiting.Retrier
}

func newRedisCounter(d Deps, strategy string) redisCounter {
	return redisCounter{d, strategy, waiting.NewRetrier(d, waiting.AnyRounds)}
}

func (c redisCounter) key(product string) string {
	return "shop:stock:" + c.name + ":{" + product + "}"
}

// sell calls the function `admit`, which takes the buyer's units from the counter and returns the new
// value. Then sell writes the sale. If that fails, it returns the units to the counter.
func (c redisCounter) sell(ctx context.Context, o purchase.Order, admit func(context.Context, purchase.Order) (left int64, _ error)) (_ purchase.Receipt, err error) {
	if err := o.Check(); err != nil { // the counter would accept an invalid amount
		return purchase.Receipt{}, err
	}
	ctx, start, cancel := c.deps.WithWait(ctx)
	defer cancel()
	left, err := admit(ctx, o)
	if err != nil {
		return purchase.Receipt{}, err
	}
	kept := false
	defer func() { // runs after a panic, too
		if !kept {
			err = errors.Join(err, c.putBack(ctx, o))
		}
	}()
	receipt := purchase.NewReceipt(o, c.name, left, c.deps.Now().Sub(start))
	err = c.retrier.RetryRefused(ctx, o.Product, func(ctx context.Context, _ time.Time) error {
		return purchase.InTx(ctx, c.deps.DB, func(tx *gorm.DB) error {
			if err := purchase.Insert(ctx, tx, o.IdempotencyKey, c.deps.Now(), &receipt); err != nil {
				return err
			}
			return purchase.DatabaseError(ctx, "take the units", product.Take(tx, o.Product, o.Amount))
		})
	})
	kept = err == nil || errors.Is(err, purchase.ErrUnknownOutcome)
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

// read returns the counter's value. The result `found` is false if Redis has no counter.
func (c redisCounter) read(ctx context.Context, client redis.Cmdable, product string) (units int64, found bool, _ error) {
	units, err := client.Get(ctx, c.key(product)).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	return units, err == nil, deps.FailedFor(ctx, deps.Redis, err)
}

// load copies the stock from the database to the counter, unless another buyer did so first. It
// returns the stock in the database.
func (c redisCounter) load(ctx context.Context, name string) (units int64, _ error) {
	p, err := product.ByName(c.deps.DB.WithContext(ctx), name)
	if err != nil {
		return 0, purchase.DatabaseError(ctx, "read the stock", err)
	}
	err = c.deps.Redis.SetNX(ctx, c.key(name), p.Amount, 0).Err() // another buyer may sell between the read and this command
	return p.Amount, deps.FailedFor(ctx, deps.Redis, err)
}

// readOrLoad returns the counter's value. Without a counter, it copies the stock and returns that.
func (c redisCounter) readOrLoad(ctx context.Context, product string) (units int64, _ error) {
	units, found, err := c.read(ctx, c.deps.Redis, product)
	if err == nil && !found {
		return c.load(ctx, product)
	}
	return units, err
}

// rest returns the stock that remains after the order, or ErrSoldOut if there are too few units.
func rest(units int64, o purchase.Order) (left int64, _ error) {
	return units - o.Amount, purchase.Check(product.Product{Amount: units}, o)
}

// putBack returns the order's units to the counter, even if the buyer has disconnected.
func (c redisCounter) putBack(ctx context.Context, o purchase.Order) error {
	ctx, cancel := c.deps.Releasing(ctx)
	defer cancel()
	return deps.Failed(deps.Redis, c.deps.Redis.IncrBy(ctx, c.key(o.Product), o.Amount).Err())
}

// Reset deletes the counter; the next buyer copies the stock again.
func (c redisCounter) Reset(ctx context.Context, product string) error {
	return deps.Failed(deps.Redis, c.deps.Redis.Del(ctx, c.key(product)).Err())
}

func (c redisCounter) KeepsStock() {}

// admitsRightly adds the promises of a strategy whose counter admits no more buyers than it had units.
func (e Entry) admitsRightly() Entry {
	e.NoPromise = map[promise.Condition]string{
		promise.DBFailover: byChance, promise.PoolerRestart: byChance, promise.PrimaryPartition: twoCounters,
	}
	e.AdmitsFirst = true
	e.CaughtBy = map[string]string{"StockCrash": "1 left that no buyer can buy", "StockForgotten": "sold twice"}
	return e.holdsExcept(promise.Promise{
		promise.Crash:            verdict.Leaked,
		promise.RedisRestart:     verdict.Oversold,
		promise.RedisFailover:    verdict.Oversold,
		promise.DBKill:           verdict.Leaked, // units whose COMMIT has an unknown outcome are not put back
		promise.DBFailover:       "",
		promise.PoolerRestart:    "",
		promise.PrimaryPartition: "",
	}).withPromiseAboveReadCommitted(promise.Crowds(), "") // a refused buyer returns its units after other buyers were told "sold out"
}
