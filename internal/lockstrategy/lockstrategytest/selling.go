package lockstrategytest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

func soldOutAtZero(tb testing.TB, w *world) {
	w.stock(tb, "apple", 3)
	shop := w.instance(stepTimeout, nil)
	for left := int64(2); left >= 0; left-- {
		receipt, err := shop.Buy(tb.Context(), order("apple", int(left), 1))
		require.NoError(tb, err)
		if receipt.Left != left || receipt.ID == 0 || receipt.Strategy != w.entry.Name {
			tb.Errorf("receipt %+v, want %d left and strategy %s", receipt, left, w.entry.Name)
		}
	}
	expect.ErrorIs(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 9, 1))), purchase.ErrSoldOut, "a buy of nothing")
	expect.Equal(tb, w.audited(tb, "apple"), audit.Sums{Stocked: 3, Records: 3, UnitsSold: 3}, "stock and records")
}

// severalUnits checks that an order is sold completely or not at all.
func severalUnits(tb testing.TB, w *world) {
	w.stock(tb, "apple", 10)
	shop := w.instance(stepTimeout, nil)
	for range 3 {
		require.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 1, 3))))
	}
	expect.ErrorIs(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 1, 3))), purchase.ErrSoldOut, "3 units of 1 left")
	expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 1, 1))), "the last unit")
	expect.Equal(tb, w.audited(tb, "apple"), audit.Sums{Stocked: 10, Records: 4, UnitsSold: 10}, "stock and records")
}

// productsApart checks that products do not affect each other, with any names.
func productsApart(tb testing.TB, w *world) {
	shop := w.instance(crowdWait, nil)
	names := []string{"apple", "Apple", "pear {x}"}
	var all sync.WaitGroup
	for _, name := range names {
		w.stock(tb, name, 5)
	}
	for _, name := range names {
		all.Go(func() {
			for i := range 3 {
				expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order(name, i, 1))), name)
			}
		})
	}
	all.Wait()
	for _, name := range names {
		if got := w.audited(tb, name); got.Records != 3 || got.Drift != 0 {
			tb.Errorf("%s: stock and records %+v, want 3 records and no drift", name, got)
		}
	}
}

// productsDoNotWait checks that a buyer does not wait for the buyers of another product.
func productsDoNotWait(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	w.stock(tb, "Apple", 5)
	shop := w.instance(crowdWait, nil)
	stuck := w.keepRowLocked(tb, "apple")
	var held []<-chan error
	for i := range 5 {
		held = append(held, buyLater(tb.Context(), shop, i))
	}
	stuck.waitForVictims(tb, 1)
	expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("Apple", 1, 1))), "a buyer of another product")
	stuck.release()
	for _, answer := range held {
		if err := receive(tb, answer, "a buyer of the held product"); err != nil && !errors.Is(err, purchase.ErrSoldOut) {
			tb.Error(err)
		}
	}
}

// errorInside checks that the strategy gives the lock back after an error inside the critical section.
func errorInside(tb testing.TB, w *world) {
	shop := w.instance(stepTimeout, nil)
	for range 2 {
		if _, err := shop.Buy(tb.Context(), order("nothing", 1, 1)); !errors.Is(err, purchase.ErrNoProduct) {
			tb.Fatalf("%v, want ErrNoProduct", err)
		}
	}
	w.stock(tb, "nothing", 1)
	expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("nothing", 1, 1))), "after it was put on sale")
}

// idempotentRetry sends eight requests under one Idempotency-Key through two processes. They must result in
// one sale and one answer, even for the last unit.
func idempotentRetry(tb testing.TB, w *world) {
	w.stock(tb, "apple", 1)
	shops := w.idempotent()
	o := order("apple", 1, 1)
	o.IdempotencyKey = "key-1"
	var (
		all      sync.WaitGroup
		receipts [8]purchase.Receipt
		errs     [8]error
	)
	for i := range receipts {
		all.Go(func() { receipts[i], errs[i] = shops[i%2].Buy(tb.Context(), o) })
	}
	all.Wait()
	for i := range receipts {
		receipts[i].Replayed = false
		receipts[i].Waited = receipts[i].Waited.Truncate(time.Millisecond) // the record has milliseconds
		if errs[i] != nil || receipts[i] != receipts[0] {
			tb.Errorf("answer %d: %+v, %v; the first: %+v", i, receipts[i], errs[i], receipts[0])
		}
	}
	w.mustHaveRecords(tb, "apple", 1)
	o.Amount = 2
	expect.ErrorIs(tb, expect.ErrorOf(shops[0].Buy(tb.Context(), o)), purchase.ErrKeyReused, "another order under the key")
}
