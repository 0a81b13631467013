package own_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// TestPlanted has copies of strategies with one mistake each. The explorer finds the mistake, and
// nothing in the same copy without it.
func TestPlanted(t *testing.T) {
	redis := []lockstrategy.Need{lockstrategy.NeedsRedis}
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		for _, c := range []struct {
			name   string
			needs  []lockstrategy.Need
			events []explore.Event
			want   verdict.Verdict // for the copy with the mistake
			build  func(d lockstrategy.Deps, mistake bool) purchase.Strategy
			long   bool // the corrected copy is a long search: on SQLite, and in make soak

			without string // the dialect on which the database prevents the mistake
		}{
			{"release before the commit", redis, nil, verdict.Oversold, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return earlyRelease{d, lockstrategy.NewRedisLocker(d), mistake}
			}, false, ""},
			{"no WHERE version", nil, nil, verdict.Oversold, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return versioned{d, mistake}
			}, false, ""},
			{"a fence compared with <=", redis, []explore.Event{explore.Forget}, verdict.Oversold, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return counted{d, mistake}
			}, true, ""},
			{"a watchdog that goes on after unlock", redis, []explore.Event{explore.Renew}, verdict.Stalled, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return renewed{d, mistake}
			}, true, ""},
			{"a lock-wait time-out taken for success", nil, []explore.Event{explore.Timeout}, verdict.Oversold, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return unheeded{d, mistake}
			}, false, dialect.Postgres},
			{"a retry of what is done already", nil, []explore.Event{explore.Timeout}, verdict.Duplicated, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return repeated{d, mistake}
			}, false, ""},
			{"a worker that answers before its COMMIT", nil, []explore.Event{explore.Crash}, verdict.Lost, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return hasty{d, mistake}
			}, false, ""},
		} {
			for mistake, want := range map[bool]verdict.Verdict{true: c.want, false: verdict.Holds} {
				name := c.name
				if !mistake {
					name += ", put right"
				}
				t.Run(name, func(t *testing.T) {
					if mistake && c.without == e.DB.Name() {
						t.Skip("an error ends the transaction there, and every further statement is refused (25P02)")
					}
					if c.long && !mistake && e.DB.Name() != dialect.SQLite {
						tier.Soak(t, "its lock is in Redis: the search on SQLite has the same")
					}
					if e.DB.Name() == dialect.Postgres && (c.needs != nil || !mistake) {
						tier.Soak(t, "MariaDB has the same: here is what only the database decides")
					}
					entry := lockstrategy.Entry{Name: "planted", Needs: c.needs, Scripts: redisscript.Redislock(), New: func(d lockstrategy.Deps) purchase.Strategy {
						return c.build(d, mistake)
					}}
					exploretest.Check(t, e, entry, exploretest.Expectation{Events: c.events, Want: want, Config: two(c.want)})
				})
			}
		}
	})
}

// earlyRelease releases a lock of Redis before the commit instead of after it.
type earlyRelease struct {
	deps   lockstrategy.Deps
	locker lockstrategy.Locker
	early  bool
}

func (s earlyRelease) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	lease, err := s.locker.Lock(ctx, o.Product)
	if err != nil {
		return receipt, err
	}
	if !s.early {
		defer lease.Release(context.WithoutCancel(ctx))
	}
	section := purchase.Section{DB: s.deps.DB, Strategy: "planted", Now: s.deps.Now}
	p, err := product.ByName(s.deps.DB.WithContext(ctx), o.Product)
	if err == nil {
		err = purchase.Check(p, o)
	}
	if err != nil {
		if s.early {
			_ = lease.Release(ctx)
		}
		return receipt, err
	}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) (err error) {
		receipt, err = section.Write(ctx, tx, p, o, 0)
		if s.early {
			_ = lease.Release(ctx)
		}
		return err
	})
	return receipt, err
}

// versioned should write only if the version is the one that it has read. With the mistake it
// always writes.
type versioned struct {
	deps  lockstrategy.Deps
	blind bool
}

func (s versioned) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	for ctx.Err() == nil {
		p, err := product.ByName(s.deps.DB.WithContext(ctx), o.Product)
		if err == nil {
			err = purchase.Check(p, o)
		}
		if err != nil {
			return receipt, err
		}
		receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Left: p.Amount - 1, Strategy: "planted"}
		wrote := false
		err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
			update := tx.Where("id = ?", p.ID)
			if !s.blind {
				update = update.Where("version = ?", p.Version)
			}
			done := update.Model(&product.Product{}).Updates(map[string]any{"amount": receipt.Left, "version": p.Version + 1})
			if wrote = done.RowsAffected == 1; !wrote || done.Error != nil {
				return done.Error
			}
			return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
		})
		if wrote || err != nil {
			return receipt, err
		}
		s.deps.Pause(ctx, 0)
	}
	return receipt, purchase.ErrBusy
}

// counted gets its fencing token from a counter in Redis. If Redis forgets the counter, two holders
// have the same token.
type counted struct {
	deps  lockstrategy.Deps
	equal bool // whether an equal token is accepted
}

func (s counted) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	for {
		taken, err := s.deps.Redis.SetNX(ctx, "planted:lock", "1", time.Hour).Result()
		if err != nil {
			return receipt, err
		}
		if taken {
			break
		}
		if s.deps.Pause(ctx, 0); ctx.Err() != nil {
			return receipt, purchase.ErrBusy
		}
	}
	defer s.deps.Redis.Del(context.WithoutCancel(ctx), "planted:lock")
	token, err := s.deps.Redis.Incr(ctx, "planted:token").Result()
	if err != nil {
		return receipt, err
	}
	compare := "fence < ?"
	if s.equal {
		compare = "fence <= ?"
	}
	sealed := s.deps.DB.WithContext(ctx).Exec("UPDATE product SET fence = ? WHERE name = ? AND "+compare, token, o.Product, token)
	if sealed.Error != nil {
		return receipt, sealed.Error
	}
	if sealed.RowsAffected == 0 {
		return receipt, purchase.ErrLockLost
	}
	p, err := product.ByName(s.deps.DB.WithContext(ctx), o.Product)
	if err == nil {
		err = purchase.Check(p, o)
	}
	if err != nil {
		return receipt, err
	}
	receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Left: p.Amount - 1, Strategy: "planted"}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		written, err := product.SetAmountFenced(tx, p.ID, receipt.Left, token)
		if err == nil && !written {
			err = purchase.ErrLockLost
		}
		if err != nil {
			return err
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
	return receipt, err
}

// renewed renews its lock by setting it again, so that the lock survives a Redis that has forgotten
// it. Its watchdog must stop, and finish its last renewal, before the unlock. Otherwise it sets the
// lock again and leaves it forever without an owner. Real cases: redisson/redisson#2714 and #7272,
// renewal after unlock.
type renewed struct {
	deps lockstrategy.Deps
	leak bool // the watchdog does not learn of the unlock
}

const (
	renewedKey = "planted:renewed"
	renewedTTL = time.Hour
)

func (s renewed) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	token := rand.Text()
	for {
		taken, err := s.deps.Redis.SetNX(ctx, renewedKey, token, renewedTTL).Result()
		if err != nil {
			return receipt, cmp.Or(context.Cause(ctx), err)
		}
		if taken {
			break
		}
		if s.deps.Pause(ctx, 0); ctx.Err() != nil {
			return receipt, purchase.ErrBusy
		}
	}
	stop := s.watch(ctx, token)
	defer func() {
		if !s.leak {
			stop()
		}
		s.deps.Redis.Del(context.WithoutCancel(ctx), renewedKey)
	}()
	section := purchase.Section{DB: s.deps.DB, Strategy: "planted", Now: s.deps.Now}
	return section.Sell(ctx, o, 0)
}

// watch renews the lock until stop is called. After stop returns, no renewal follows.
func (s renewed) watch(ctx context.Context, token string) (stop func()) {
	var mu sync.Mutex // held during a renewal
	var timer rlock.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = s.deps.Renewal(ctx, renewedTTL/3, func(ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			s.deps.Redis.Set(ctx, renewedKey, token, renewedTTL)
			timer.Reset(renewedTTL / 3)
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		stopped = true
	}
}

// unheeded should check the changed rows and the error of its UPDATE. With the mistake it ignores
// them. After a time-out InnoDB has undone only that statement, so the record is written without
// the stock.
type unheeded struct {
	deps lockstrategy.Deps
	deaf bool
}

func (s unheeded) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		done := tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ? AND amount >= 1", o.Product)
		switch {
		case done.Error != nil && !s.deaf:
			return purchase.DatabaseError(ctx, "take one", done.Error)
		case done.Error == nil && done.RowsAffected == 0:
			return purchase.ErrSoldOut
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
	return receipt, err
}

// two allows two preemptions. If one sale too many is expected, there is a unit for each buyer, so
// that no buyer is refused.
func two(want verdict.Verdict) func(c *explore.Config) {
	return func(c *explore.Config) {
		if c.Bound = 2; want == verdict.Duplicated {
			c.Stock = 2
		}
	}
}

// repeated tries again after a time-out. It repeats the whole purchase in one transaction, or in
// two, of which the first has been committed.
type repeated struct {
	deps  lockstrategy.Deps
	split bool
}

func (s repeated) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	record := func(tx *gorm.DB) error {
		receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	}
	take := func(tx *gorm.DB) error {
		return purchase.DatabaseError(ctx, "take one", tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error)
	}
	for ctx.Err() == nil {
		if s.split {
			if err = purchase.InTx(ctx, s.deps.DB, record); err == nil {
				err = purchase.InTx(ctx, s.deps.DB, take)
			}
		} else {
			err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
				if err := record(tx); err != nil {
					return err
				}
				return take(tx)
			})
		}
		if !errors.Is(err, purchase.ErrBusy) {
			break
		}
		s.deps.Pause(ctx, 0)
	}
	return receipt, err
}

// hasty sells in a goroutine and passes on the answer after its COMMIT. With the mistake it does so
// before.
type hasty struct {
	deps  lockstrategy.Deps
	early bool
}

// Work implements purchase.Worker: the strategy's goroutines outlive a buy.
func (s hasty) Work(ctx context.Context) { <-ctx.Done() }

func (s hasty) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	answer := make(chan error, 2)
	ctx = context.WithoutCancel(ctx)
	go func() {
		answer <- purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
			done := tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ? AND amount >= 1", o.Product)
			switch {
			case done.Error != nil:
				return purchase.DatabaseError(ctx, "take one", done.Error)
			case done.RowsAffected == 0:
				return purchase.ErrSoldOut
			}
			err := purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
			if err == nil && s.early {
				answer <- nil
			}
			return err
		})
	}()
	err := <-answer
	return receipt, err
}
