package lockstrategytest

import (
	"context"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// restockWithUnitsLeft checks that a restock removes the remaining units, wherever the strategy keeps them.
// They may be in several rows, on another server, or in the memory of one of two processes.
func restockWithUnitsLeft(tb testing.TB, w *world) {
	shops := []purchase.Strategy{w.instance(stepTimeout, nil), w.instance(stepTimeout, nil)}
	w.stock(tb, "apple", 11)
	for i, units := range []int64{1, 3, 2} { // 5 units remain
		require.NoError(tb, expect.ErrorOf(shops[i%2].Buy(tb.Context(), order("apple", i, units))))
	}
	for round, stocked := range []int64{7, 2, 0} { // more units than remain, fewer, and none
		require.NoError(tb, w.restock(tb.Context(), shops[round%2], "apple", stocked))
		w.mustBe(tb, "restocked", audit.Sums{Stocked: stocked, Leftover: stocked})
		shop := shops[(round+1)%2]
		if stocked == 7 {
			expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 10, 4))), "4 of 7 units")
			continue // 3 units remain
		}
		expect.ErrorIs(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 10, stocked+1))), purchase.ErrSoldOut, stocked+1, "of", stocked, "units")
		w.mustBe(tb, "one too many asked for", audit.Sums{Stocked: stocked, Leftover: stocked})
	}
}

// restockWhileHolding checks that a restock waits for the buyers of its process. Afterwards all units of
// the restock are on sale, whether the waiting buyer has bought or has disconnected.
func restockWhileHolding(tb testing.TB, w *world) {
	for _, hangsUp := range []bool{false, true} {
		events := newEvents()
		shop := w.instance(stepTimeout, events.observe)
		entry := &signalEntry{Strategy: shop, entered: make(chan struct{})}
		counter := w.counter(entry)
		w.stock(tb, "apple", 5)
		stuck := w.keepRowLocked(tb, "apple")
		ctx, hangUp := context.WithCancel(tb.Context())
		inside := make(chan error, 1)
		go func() {
			_, err := counter.Sell(ctx, w.entry.Name, order("apple", 1, 2))
			inside <- err
		}()
		entry.expect(tb)
		awaitInside(tb, w, events, stuck)
		restocked := make(chan error, 1)
		go func() {
			restocked <- counter.Closed(tb.Context(), "apple", func() error { return w.restock(tb.Context(), shop, "apple", 9) })
		}()
		if hangsUp {
			hangUp()
		}
		stuck.release()
		if err := receive(tb, inside, "the buyer inside"); !hangsUp && err != nil {
			tb.Errorf("the buyer inside: %v", err)
		}
		hangUp()
		require.NoError(tb, receive(tb, restocked, "the restock"))
		w.settle(tb, "apple")
		w.mustBe(tb, "restocked", audit.Sums{Stocked: 9, Leftover: 9})
		expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 2, 2))), "after the restock")
		w.mustBe(tb, "sold", audit.Sums{Stocked: 9, Leftover: 7, Records: 1, UnitsSold: 2})
	}
}

// counter returns a purchase.Counter that sells through the strategy `shop`. A restock waits until its
// buyers have been served.
func (w *world) counter(shop purchase.Strategy) *purchase.Counter {
	return &purchase.Counter{
		Strategies: map[string]purchase.Strategy{w.entry.Name: shop}, Wait: stepTimeout, Seats: make(chan struct{}, 8),
		Down: func(context.Context, string) error { return nil }, Watch: unwatched{},
	}
}

// A signalEntry closes its channel `entered` when its only buyer enters Buy.
type signalEntry struct {
	purchase.Strategy
	entered chan struct{}
}

func (e *signalEntry) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	close(e.entered)
	return e.Strategy.Buy(ctx, o)
}

func (e *signalEntry) expect(tb testing.TB) {
	tb.Helper()
	select {
	case <-e.entered:
	case <-time.After(stepTimeout):
		tb.Fatalf("no buyer came within %s", stepTimeout)
	}
}

type unwatched struct{}

func (unwatched) Called(string, purchase.Order) {}
func (unwatched) Returned(string, purchase.Order, purchase.Receipt, purchase.Outcome, time.Time, time.Time) {
}
func (unwatched) TurnedAway(string, purchase.Order) {}
