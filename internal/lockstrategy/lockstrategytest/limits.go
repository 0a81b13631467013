package lockstrategytest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// lacksLimit returns a reason to skip a strategy without a limit of its own.
func lacksLimit(w *world) string {
	if w.entry.MaxUnits+w.entry.MaxBuyers == 0 {
		return "it has no limit of rows, groups or batches"
	}
	return ""
}

// beyondLimits checks that the strategy sells to one more buyer than one transaction serves, and from more
// units than it keeps in rows of their own. The test locks the row until all buyers wait, so that the
// strategy finds them together.
func beyondLimits(tb testing.TB, w *world) {
	var waiting atomic.Int64
	shop := w.instance(crowdWait, func(_ context.Context, e lockstrategy.Event) {
		if e.Kind == lockstrategy.Waiting {
			waiting.Add(1)
		}
	})
	buyers := w.entry.MaxBuyers + 1
	stocked := int64(max(w.entry.MaxUnits, buyers) + 2)
	w.stock(tb, "apple", stocked)
	if _, err := shop.Buy(tb.Context(), order("apple", 0, 1)); err != nil { // fills the rows, or the stock in Redis
		tb.Fatal(err)
	}
	w.mustBe(tb, "after the first sale", audit.Sums{Stocked: stocked, Leftover: stocked - 1, Records: 1, UnitsSold: 1})
	stuck := w.keepRowLocked(tb, "apple")
	waiting.Store(0)
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 1+i, 1))), "buyer", 1+i)
		})
	}
	for deadline := time.Now().Add(stepTimeout); w.entry.MaxBuyers > 0 && waiting.Load() < int64(buyers) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	stuck.release()
	all.Wait()
	w.settle(tb, "apple")
	sold := int64(buyers) + 1
	w.mustBe(tb, "beyond the limits", audit.Sums{Stocked: stocked, Leftover: stocked - sold, Records: sold, UnitsSold: sold})
}
