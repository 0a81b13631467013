package lockstrategy

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

var errChanged = fmt.Errorf("%w: another buyer has changed the stock in Redis", purchase.ErrBusy)

// RedisWatch computes the stock in the shop and keeps it in Redis, if no other buyer has changed it.
//
//   - Summary: WATCH, GET, then MULTI, SET, EXEC in Redis, repeated while EXEC returns nil; then insert + unconditional update;
//     INCR if there is no sale
//   - Guarantees: The SET takes effect only if no other client has written the key since the WATCH. The counter
//     admits no more buyers than it had units, while Redis keeps the counter and no other strategy sells.
//   - Breaks when: a crash after EXEC or during COMMIT leaks a unit; a lost counter in Redis oversells
//   - How it breaks: A buyer takes the last unit from the counter (EXEC) and crashes: the database
//     still has the unit, but no buyer can buy it (leaked). The same happens if the database crashes during the COMMIT. Or
//     Redis loses the counter after A was admitted: B copies the stock from the database, where A has not written
//     yet, and is admitted too (oversold). Code that ignores the nil of EXEC oversells in every rush.
//   - Cost: A sale takes three round trips to Redis, on a connection that no other buyer can use meanwhile. A buyer
//     starts again each time another buyer writes first, so a process admits only a few buyers at a time.
//   - Source: Redis documentation, "Transactions", "Optimistic locking using check-and-set"; Kung and Robinson, "On
//     Optimistic Methods for Concurrency Control", ACM TODS 6(2), 1981
type RedisWatch struct {
	redisCounter
	rounds waiting.Retrier
}

// NewRedisWatch returns the strategy. It needs the database and a Redis.
func NewRedisWatch(d Deps) *RedisWatch {
	return &RedisWatch{newRedisCounter(d, "redis-watch"), waiting.NewRetrier(d, waiting.FewRounds)}
}

// Buy implements purchase.Strategy.
func (s *RedisWatch) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return s.sell(ctx, o, s.admit)
}

func (s *RedisWatch) admit(ctx context.Context, o purchase.Order) (left int64, err error) {
	err = s.rounds.RetryWithin(ctx, o.Product, func(ctx context.Context) error {
		left, err = s.round(ctx, o)
		return err
	})
	return left, err
}

// round takes the units from the counter, or returns errChanged if another buyer has changed the counter. It
// copies the stock outside the WATCH: a write to the watched key would make EXEC fail.
func (s *RedisWatch) round(ctx context.Context, o purchase.Order) (left int64, _ error) {
	for {
		found := false
		err := s.deps.Redis.Watch(ctx, func(tx *redis.Tx) (err error) {
			var units int64
			if units, found, err = s.read(ctx, tx, o.Product); err != nil || !found {
				return err
			}
			if left, err = rest(units, o); err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, s.key(o.Product), left, 0).Err() })
			return err
		}, s.key(o.Product))
		switch {
		case errors.Is(err, redis.TxFailedErr):
			return 0, errChanged
		case errors.Is(err, purchase.ErrSoldOut):
			return 0, err
		case err != nil || found:
			return left, deps.FailedFor(ctx, deps.Redis, err) // despite an error of EXEC, Redis may have taken the units, which are then leaked
		}
		if _, err := s.load(ctx, o.Product); err != nil {
			return 0, err
		}
	}
}

func redisWatchEntry() Entry {
	return Entry{
		Name: "redis-watch", Family: redisStock,
		Needs: []Need{NeedsRedis},
		New:   func(d Deps) purchase.Strategy { return NewRedisWatch(d) },
		Traits: Traits{
			Witnesses: []WitnessSearch{{Flags: "--events crash --bound 1"}, {Suffix: "-forget", Flags: "--events forget --bound 1"}},
		},
	}.admitsRightly()
}
