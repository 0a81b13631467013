package own_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/rlock"
)

// TestPlanted explores copies of strategies, with and without a mistake. The explorer finds each
// mistake, and no violation without it. Each mistake needs an event that breaks no strategy of the
// catalogue and no patch of trackrecord/planted.
func TestPlanted(t *testing.T) {
	redis := []lockstrategy.Need{lockstrategy.NeedsRedis}
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		for _, c := range []struct {
			name  string
			needs []lockstrategy.Need
			event explore.Event
			want  verdict.Verdict // verdict on the copy with the mistake
			build func(d lockstrategy.Deps, mistake bool) purchase.Strategy

			without string // the dialect of the database that prevents the mistake
		}{
			{"a watchdog that goes on after unlock", redis, explore.Renew, verdict.Stalled, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return renewed{d, mistake}
			}, ""},
			{"a lock-wait time-out taken for success", nil, explore.Timeout, verdict.Oversold, func(d lockstrategy.Deps, mistake bool) purchase.Strategy {
				return unheeded{d, mistake}
			}, dialect.Postgres},
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
					if c.needs != nil && !mistake && e.DB.Name() != dialect.SQLite {
						tier.Soak(t, "a lock in Redis works alike with every database, so SQLite is enough")
					}
					if e.DB.Name() == dialect.Postgres && (c.needs != nil || !mistake) {
						tier.Soak(t, "a search that make test runs on MariaDB, and that PostgreSQL does not change")
					}
					entry := lockstrategy.Entry{Name: "planted", Needs: c.needs, New: func(d lockstrategy.Deps) purchase.Strategy {
						return c.build(d, mistake)
					}}
					exploretest.Check(t, e, entry, exploretest.Expectation{
						Events: []explore.Event{c.event}, Want: want, Config: func(c *explore.Config) { c.Bound = 2 },
					})
				})
			}
		}
	})
}

// renewed renews its lock by setting the key again, so that the lock survives a Redis that has
// forgotten the key. Before the unlock, the watchdog must stop and finish its last renewal. Otherwise
// it sets the key again, and the lock stays forever without a holder. Real cases:
// redisson/redisson#2714 and #7272, renewal after unlock.
type renewed struct {
	deps lockstrategy.Deps
	leak bool // the mistake: the watchdog continues after the unlock
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

// unheeded ignores the error and the number of changed rows of its UPDATE, if it contains the mistake.
// After a time-out, InnoDB undoes only that statement, so the transaction writes the record without
// reducing the stock.
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
