package explore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// A planted strategy makes a decision that depends on one fact. The hash of a state must distinguish that fact.
type planted struct {
	deps     lockstrategy.Deps
	listener *redis.PubSub // for byMessage
	buy      func(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error)
}

func (s *planted) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return s.buy(ctx, s, o)
}

// Close is called after the schedule, since a server may still count a listener that has just left.
func (s *planted) Close() error {
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

// TestState runs strategies whose decision depends on one fact. All other processes that knew the fact have ended, so
// only the hash of the state can distinguish it. Merged and full searches must count the same. make soak runs every
// schedule, make test those with two preemptions.
func TestState(t *testing.T) {
	tier.Test(t, "a search that runs each schedule")
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		decidesBy string
		events    []explore.Event
		buy       func(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error)
	}{
		{"the clock, after a step that is independent of its jump", []explore.Event{explore.Expire}, byClock},
		{"the ids of records", nil, byID},
		{"the id of its own record", nil, byInsertID},
		{"whether its view is stale", []explore.Event{explore.Crash}, byView},
		{"a lease that ends soon", []explore.Event{explore.Crash}, byShortLease},
		{"when a record was written", []explore.Event{explore.Expire, explore.Crash}, byRecordTime},
		{"what a message says", []explore.Event{explore.Crash}, byMessage},
		{"an answer with a colon", nil, byAnswer},
		{"an answer of several words", nil, byWords},
		{"keys that a command names besides the first", []explore.Event{explore.Crash}, byOtherKeys},
		{"whether a watched key has changed and is the same again", []explore.Event{explore.Crash}, byWatch},
		{"a watchdog that is due since nobody could move", []explore.Event{explore.Expire}, byTimePassed},
		{"whether a lock was freed or its lease expired", []explore.Event{explore.Raise}, byFreed},
		{"which buyer has hung up", []explore.Event{explore.Disconnect}, byGone},
	} {
		t.Run(c.decidesBy, func(t *testing.T) {
			config := exploretest.Config(e, lockstrategy.Entry{
				Name: "planted", Needs: []lockstrategy.Need{lockstrategy.NeedsRedis},
				New: func(d lockstrategy.Deps) purchase.Strategy { return &planted{deps: d, buy: c.buy} },
			})
			config.Events, config.Stock = c.events, 2
			if slices.Contains(c.events, explore.Disconnect) {
				config.Units = explore.Units{1, 3} // the refusal of the second buyer is right
			}
			if !tier.Soaking() {
				config.Bound = 2
			}
			merged, full := sameMerged(t, config)
			if len(full.Verdicts) < 2 || merged.Runs >= full.Runs {
				t.Errorf("%v in %d runs, merged %d: proves nothing", full.Verdicts, full.Runs, merged.Runs)
			}
		})
	}
}

// search runs a search and deletes its keys.
func search(t *testing.T, c explore.Config) explore.Result {
	t.Helper()
	x, err := explore.New(t.Context(), c)
	require.NoError(t, err)
	result, err := x.Search(t.Context())
	require.NoError(t, errors.Join(err, x.Close()))
	return result
}

// second reports whether o belongs to the second buyer, which creates the fact. The first buyer makes the decision.
func second(o purchase.Order) bool { return o.Purchaser == "buyer-2" }

// sell records a sale. If right is false, it takes no unit from the stock. The two commands differ only in
// their values.
func (s *planted) sell(ctx context.Context, o purchase.Order, right bool) (receipt purchase.Receipt, err error) {
	receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	units := 0
	if right {
		units = 1
	}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if err := tx.Exec("UPDATE product SET amount = amount - ? WHERE name = ?", units, o.Product).Error; err != nil {
			return purchase.DatabaseError(ctx, "take", err)
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
	return receipt, err
}

// gone is the answer to a buyer that only assists the other buyer.
func gone(err error) (purchase.Receipt, error) {
	return purchase.Receipt{}, errors.Join(purchase.ErrBusy, err)
}

func byClock(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	if second(o) {
		return gone(s.deps.Redis.Get(ctx, "planted:other").Err())
	}
	until := s.deps.Now().Add(time.Hour).UnixMilli()
	if err := s.deps.Redis.Set(ctx, "planted:until", until, 0).Err(); err != nil {
		return purchase.Receipt{}, err
	}
	if _, err := product.ByName(s.deps.DB.WithContext(ctx), o.Product); err != nil {
		return purchase.Receipt{}, err
	}
	return s.sell(ctx, o, s.deps.Now().UnixMilli() < until)
}

func byID(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "claim"}
	db := s.deps.DB.WithContext(ctx).Session(&gorm.Session{SkipDefaultTransaction: true})
	if err := purchase.Insert(ctx, db, "", s.deps.Now(), &receipt); err != nil {
		return receipt, err
	}
	var first int64
	if err := db.Raw("SELECT id FROM purchase_history ORDER BY id LIMIT 1").Scan(&first).Error; err != nil {
		return receipt, err
	}
	if err := db.Exec("DELETE FROM purchase_history WHERE purchaser = ?", o.Purchaser).Error; err != nil {
		return receipt, err
	}
	return s.sell(ctx, o, first == receipt.ID)
}

func byInsertID(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	pool, err := s.deps.DB.DB()
	if err != nil {
		return purchase.Receipt{}, err
	}
	done, err := pool.ExecContext(ctx, `INSERT INTO purchase_history (product_name, purchaser, purchase_time, amount, strategy, left_after, waited_ms)
		VALUES (?, ?, ?, 1, 'claim', 0, 0)`, o.Product, o.Purchaser, s.deps.Now())
	if err != nil {
		return purchase.Receipt{}, err
	}
	id, _ := done.LastInsertId()
	if _, err := pool.ExecContext(ctx, "DELETE FROM purchase_history WHERE purchaser = ?", o.Purchaser); err != nil {
		return purchase.Receipt{}, err
	}
	if second(o) {
		return gone(nil)
	}
	var other int64
	if err := pool.QueryRowContext(ctx, "SELECT seq FROM sqlite_sequence WHERE name = 'purchase_history'").Scan(&other); err != nil {
		return purchase.Receipt{}, err
	}
	return s.sell(ctx, o, id == other)
}

func byView(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	db := s.deps.DB.WithContext(ctx)
	if second(o) { // writes that cancel each other
		for n := range 4 {
			if err := db.Exec("UPDATE product SET version = ? WHERE name = ?", 1-n%2, o.Product).Error; err != nil {
				return gone(err)
			}
		}
		return gone(nil)
	}
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	_, err := product.ByName(db, o.Product) // a read before the snapshot, so that the first read and the snapshot differ in age
	if err != nil {
		return receipt, err
	}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if _, err := product.ByName(tx, o.Product); err != nil {
			return err
		}
		return purchase.DatabaseError(ctx, "take", tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error)
	})
	if err == nil || errors.Is(err, purchase.ErrBusy) { // ignores a refusal
		err = purchase.Insert(ctx, db, "", s.deps.Now(), &receipt)
	}
	return receipt, err
}

func byShortLease(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	const key = "planted:lock"
	for {
		taken, err := s.deps.Redis.SetNX(ctx, key, "1", 0).Result()
		if err != nil {
			return purchase.Receipt{}, cmp.Or(context.Cause(ctx), err)
		}
		if taken {
			break
		}
		if s.deps.Pause(ctx, 0); ctx.Err() != nil {
			return purchase.Receipt{}, purchase.ErrBusy
		}
	}
	if err := s.deps.Redis.Expire(ctx, key, 5*time.Minute).Err(); err != nil {
		return purchase.Receipt{}, err
	}
	return gone(s.deps.Redis.Del(ctx, key).Err())
}

func byRecordTime(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	db := s.deps.DB.WithContext(ctx).Session(&gorm.Session{SkipDefaultTransaction: true})
	if second(o) {
		until := s.deps.Now().Add(time.Hour).UnixMilli()
		if err := s.deps.Redis.Set(ctx, "planted:until", until, 0).Err(); err != nil {
			return gone(err)
		}
		claim := purchase.Record{ProductName: o.Product, Purchaser: "a claim", PurchaseTime: s.deps.Now(), Strategy: "claim"}
		return gone(db.Create(&claim).Error) // purchase.Insert would refuse a record without units
	}
	var claims []purchase.Record
	if err := db.Where("purchaser = ?", "a claim").Find(&claims).Error; err != nil {
		return purchase.Receipt{}, err
	}
	late := len(claims) > 0 && s.deps.Now().Sub(claims[0].PurchaseTime) > time.Hour
	return s.sell(ctx, o, !late)
}

func byMessage(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	const channel = "planted:channel"
	if second(o) {
		for _, word := range []string{"good", "bad", "bad"} { // the buyer may crash after the second word
			if err := s.deps.Redis.Publish(ctx, channel, word).Err(); err != nil {
				return gone(err)
			}
		}
		return gone(nil)
	}
	if err := s.deps.Redis.Get(ctx, "planted:other").Err(); err != nil && !errors.Is(err, redis.Nil) {
		return purchase.Receipt{}, err
	}
	client, ok := s.deps.Redis.(*redis.Client)
	if !ok {
		return purchase.Receipt{}, fmt.Errorf("a %T", s.deps.Redis)
	}
	s.listener = client.Subscribe(ctx, channel)
	select {
	case m := <-s.listener.Channel():
		return s.sell(ctx, o, m.Payload == "good")
	case <-ctx.Done():
		return purchase.Receipt{}, purchase.ErrBusy
	}
}

func byAnswer(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	return s.byValue(ctx, o, "good: 1", "bad: 1")
}

// byValue sells correctly or not, depending on the value of a key.
func (s *planted) byValue(ctx context.Context, o purchase.Order, good, bad string) (purchase.Receipt, error) {
	const key = "planted:value"
	if second(o) {
		for _, value := range []string{good, bad, bad} { // the last write hides the change before it
			if err := s.deps.Redis.Set(ctx, key, value, 0).Err(); err != nil {
				return gone(err)
			}
		}
		return gone(nil)
	}
	value, err := s.deps.Redis.Get(ctx, key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return purchase.Receipt{}, err
	}
	return s.sell(ctx, o, value == good)
}

func byWords(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	const key = "planted:list"
	if second(o) {
		for _, words := range [][]any{{"a b", "c"}, {"a", "b c"}, {"a", "b c"}} {
			_, err := s.deps.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Del(ctx, key)
				return p.RPush(ctx, key, words...).Err()
			})
			if err != nil {
				return gone(err)
			}
		}
		return gone(nil)
	}
	words, err := s.deps.Redis.LRange(ctx, key, 0, -1).Result()
	if err != nil {
		return purchase.Receipt{}, err
	}
	return s.sell(ctx, o, len(words) > 0 && words[0] == "a")
}

func byOtherKeys(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	if second(o) {
		for _, value := range []string{"good", "bad"} {
			if err := s.deps.Redis.MSet(ctx, "planted:one", "1", "planted:two", value).Err(); err != nil {
				return gone(err)
			}
		}
		return gone(nil)
	}
	values, err := s.deps.Redis.MGet(ctx, "planted:one", "planted:two").Result()
	if err != nil {
		return purchase.Receipt{}, err
	}
	return s.sell(ctx, o, values[1] == "good")
}

// byWatch learns from EXEC whether the second buyer has changed the key.
func byWatch(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	const key = "planted:watched-key"
	if second(o) {
		return gone(errors.Join(s.deps.Redis.Set(ctx, key, "1", 0).Err(), s.deps.Redis.Del(ctx, key).Err()))
	}
	err := s.deps.Redis.Get(ctx, "planted:other").Err()
	if !errors.Is(err, redis.Nil) {
		return purchase.Receipt{}, err
	}
	err = s.deps.Redis.Watch(ctx, func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, key, "2", 0).Err() })
		return err
	}, key)
	if err != nil && !errors.Is(err, redis.TxFailedErr) {
		return purchase.Receipt{}, err
	}
	return s.sell(ctx, o, err == nil)
}

// byFreed frees its lock after an error, except after an error in its sale. In both cases the other buyer then
// gets the lock, but only one of them is a violation.
func byFreed(ctx context.Context, s *planted, o purchase.Order) (receipt purchase.Receipt, err error) {
	const key = "planted:freed"
	if err := s.lock(ctx, key, o); err != nil {
		return receipt, err
	}
	db := s.deps.DB.WithContext(ctx).Session(&gorm.Session{SkipDefaultTransaction: true})
	if err = db.Exec("SELECT 1").Error; err == nil {
		if receipt, err = s.sell(ctx, o, true); err != nil {
			return receipt, err
		}
	}
	return receipt, errors.Join(err, s.deps.Redis.Del(ctx, key).Err())
}

// byGone refuses every buyer. A buyer that has hung up never learns that.
func byGone(ctx context.Context, s *planted, _ purchase.Order) (purchase.Receipt, error) {
	for range 2 {
		if err := s.deps.Redis.Get(context.WithoutCancel(ctx), "planted:other").Err(); !errors.Is(err, redis.Nil) {
			return purchase.Receipt{}, err
		}
	}
	return purchase.Receipt{}, purchase.ErrSoldOut
}

// lock takes a lock for an hour. It polls until the lock is free.
func (s *planted) lock(ctx context.Context, key string, o purchase.Order) error {
	for {
		taken, err := s.deps.Redis.SetNX(ctx, key, o.Purchaser, time.Hour).Result()
		switch {
		case ctx.Err() != nil:
			return purchase.ErrBusy
		case err != nil || taken:
			return err
		}
		s.deps.Pause(ctx, 0)
	}
}

// byTimePassed takes a lock with a watchdog and the database's write lock, in another order for each buyer. If each buyer
// has one of them, both are blocked until time passes.
func byTimePassed(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	const key = "planted:watched"
	if !second(o) {
		if err := s.lock(ctx, key, o); err != nil {
			return purchase.Receipt{}, err
		}
		timer := s.deps.Renewal(ctx, time.Minute, func(ctx context.Context) { s.deps.Redis.PExpire(ctx, key, time.Hour) })
		receipt, err := s.sell(ctx, o, true)
		timer.Stop()
		return receipt, errors.Join(err, s.deps.Redis.Del(context.WithoutCancel(ctx), key).Err())
	}
	return gone(purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if err := tx.Exec("UPDATE product SET version = 1 WHERE name = ?", o.Product).Error; err != nil {
			return err
		}
		return s.lock(ctx, key, o)
	}))
}
