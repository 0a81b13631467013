package lockstrategytest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// invalid are orders that no strategy may sell, by what is wrong with them.
func invalid() map[string]purchase.Order {
	o := order("apple", 9, 1)
	wrong := map[string]purchase.Order{}
	with := func(what string, change func(o *purchase.Order)) {
		bad := o
		change(&bad)
		wrong[what] = bad
	}
	with("the key of another order", func(o *purchase.Order) { o.IdempotencyKey = "taken" })
	with("fewer than no units", func(o *purchase.Order) { o.Amount = -5 })
	with("no units", func(o *purchase.Order) { o.Amount = 0 })
	with("more units than an order may have", func(o *purchase.Order) { o.Amount = purchase.MaxAmount + 1 })
	with("too long a name", func(o *purchase.Order) { o.Purchaser = strings.Repeat("x", product.MaxName+1) })
	with("too long a key", func(o *purchase.Order) { o.IdempotencyKey = strings.Repeat("x", product.MaxName+1) })
	with("a name that is no text", func(o *purchase.Order) { o.Purchaser = "\xff" })
	return wrong
}

// lacksOrder: where the buyers of a process race, what becomes of one says nothing of the others.
func lacksOrder(w *world) string {
	if _, broken := caughtBy(w, "Rush"); broken {
		return "it does not keep the buyers of a process apart"
	}
	return ""
}

// badOrderAlone: an order that cannot be sold fails alone. Those that stand in line with it, and
// may share its transaction, are sold.
func badOrderAlone(tb testing.TB, w *world) {
	const good = 3
	wrong := invalid()
	w.stock(tb, "pear", 1)
	w.stock(tb, "apple", 2_000)
	taken := order("pear", 9, 1)
	taken.IdempotencyKey = "taken"
	if _, err := w.instance(stepTimeout, nil).Buy(tb.Context(), taken); err != nil {
		tb.Fatal(err)
	}
	events := newEvents()
	shop := w.instance(crowdWait, events.observe)
	stuck := w.keepRowLocked(tb, "apple")
	var all sync.WaitGroup
	buy := func(o purchase.Order, check func(receipt purchase.Receipt, err error)) {
		all.Go(func() { check(shop.Buy(tb.Context(), o)) })
	}
	buy(order("apple", 1, 1), func(_ purchase.Receipt, err error) {
		if err != nil {
			tb.Errorf("the buyer ahead: %v", err)
		}
	})
	comesInside(tb, w, events, stuck)
	for what, o := range wrong {
		buy(o, func(receipt purchase.Receipt, err error) {
			if purchase.OutcomeOf(err) != purchase.Failed && !errors.Is(err, purchase.ErrSoldOut) {
				tb.Errorf("an order with %s: %+v, %v; it must fail", what, receipt, err)
			}
		})
	}
	for i := range good {
		buy(order("apple", 2+i, 1), func(_ purchase.Receipt, err error) {
			if err != nil {
				tb.Errorf("beside orders that cannot be sold: %v", err)
			}
		})
	}
	stuck.release()
	all.Wait()
	w.settle(tb, "apple")
	w.mustBe(tb, "beside orders that cannot be sold", audit.Report{Stocked: 2_000, Leftover: 2_000 - 1 - good, Records: 1 + good, UnitsSold: 1 + good})
}
