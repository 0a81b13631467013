package own_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// littering is a strategy that sells by a guarded statement. In the transaction of a refused buyer, it
// calls the function refuse, which may leave a lock or a transaction.
type littering struct {
	deps   lockstrategy.Deps
	refuse func(tx *gorm.DB)
}

func (s littering) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx = context.WithoutCancel(ctx) // otherwise database/sql rolls back when Buy returns
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	tx := s.deps.DB.WithContext(ctx).Begin()
	if tx.Error != nil {
		return receipt, tx.Error
	}
	done := tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ? AND amount >= 1", o.Product)
	switch {
	case done.Error != nil:
		tx.Rollback()
		return receipt, purchase.DatabaseError(ctx, "take one", done.Error)
	case done.RowsAffected == 0:
		s.refuse(tx)
		return receipt, purchase.ErrSoldOut
	}
	if err := purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt); err != nil {
		tx.Rollback()
		return receipt, err
	}
	return receipt, tx.Commit().Error
}

// explored searches the strategy's schedules. If there is a violation, it replays and returns the
// witness.
func explored(t *testing.T, e *engine.Engine, refuse func(tx *gorm.DB)) *explore.Witness {
	t.Helper()
	begun := time.Now()
	x := exploretest.Open(t, exploretest.Config(e, lockstrategy.Entry{Name: "planted", New: func(d lockstrategy.Deps) purchase.Strategy {
		return littering{d, refuse}
	}}))
	r, err := x.Search(t.Context())
	require.NoError(t, err)
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("the search took %s", took)
	}
	if r.Witness == nil {
		if r.Explored < 2 || !r.Complete {
			t.Fatalf("%d schedules, complete %t", r.Explored, r.Complete)
		}
		return nil
	}
	again, err := x.Replay(t.Context(), r.Witness.Schedule)
	if err != nil || again.Verdict != r.Witness.Verdict {
		t.Fatalf("the replay of %s: %v, %+v", r.Witness.Schedule, err, again)
	}
	t.Logf("%s: %s", again.Verdict, again.Why)
	return r.Witness
}

// TestLeftOpen: a transaction that a refused buyer leaves open is a violation. Its locks do not affect
// later schedules.
func TestLeftOpen(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		if w := explored(t, e, func(tx *gorm.DB) { tx.Rollback() }); w != nil {
			t.Errorf("with a rollback: %s, %s", w.Verdict, w.Why)
		}
		w := explored(t, e, func(*gorm.DB) {})
		if w == nil || w.Verdict != verdict.LeakedLock || !strings.Contains(w.Why, "idle connection still has an open transaction (UPDATE product SET amount") {
			t.Errorf("%+v, want %s with the statement", w, verdict.LeakedLock)
		}
	})
}

// TestCloses: a closed explorer leaves no connection and no goroutine.
func TestCloses(t *testing.T) {
	e := enginetest.Embedded(t)
	search := func() {
		c := exploretest.Config(e, exploretest.Entry(t, "redlock"))
		c.Bound = 0
		x, err := explore.New(t.Context(), c)
		require.NoError(t, err)
		_, err = x.Search(t.Context())
		require.NoError(t, errors.Join(err, x.Close()))
	}
	search() // in this first search, the engine opens its own connections
	before := goleak.IgnoreCurrent()
	search()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// TestNeverEnds: code of the strategy that never ends is a violation, and not an error of the explorer.
func TestNeverEnds(t *testing.T) {
	tier.Test(t, "it waits until a buyer is certain to be stuck")
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		name, says string
		soak       bool
		refuse     func(end <-chan struct{}) // called in Buy, after its transaction
	}{
		{"a goroutine", "a goroutine of the strategy does not end: chan receive at leftover_test.go", false, func(end <-chan struct{}) { go func() { <-end }() }},
		{"a Buy that waits", "its Buy does not return: chan receive at leftover_test.go", false, func(end <-chan struct{}) { <-end }},
		{"a Buy that computes", "its Buy does not return: run", true, func(end <-chan struct{}) {
			for len(end) == 0 {
				select {
				case <-end:
					return
				default:
					runtime.Gosched()
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.soak {
				tier.Soak(t, "waits half a minute, so that slow code does not count as endless")
			}
			end := make(chan struct{})
			defer close(end)
			w := explored(t, e, func(tx *gorm.DB) {
				tx.Rollback()
				c.refuse(end)
			})
			if w == nil || w.Verdict != verdict.Stalled || !strings.Contains(w.Why, c.says) {
				t.Errorf("%+v, want %s: %s", w, verdict.Stalled, c.says)
			}
		})
	}
}
