package lockstrategytest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// invalid returns orders that no strategy may sell. Each key says what is wrong with the order.
func invalid() map[string]purchase.Order {
	o := order("apple", 9, 1)
	wrong := map[string]purchase.Order{}
	with := func(what string, change func(o *purchase.Order)) {
		bad := o
		change(&bad)
		wrong[what] = bad
	}
	with("the key of another order", func(o *purchase.Order) { o.IdempotencyKey = "taken" })
	with("a negative amount", func(o *purchase.Order) { o.Amount = -5 })
	with("no units", func(o *purchase.Order) { o.Amount = 0 })
	with("more units than an order may have", func(o *purchase.Order) { o.Amount = purchase.MaxAmount + 1 })
	with("a name that is too long", func(o *purchase.Order) { o.Purchaser = strings.Repeat("x", product.MaxName+1) })
	with("a key that is too long", func(o *purchase.Order) { o.IdempotencyKey = strings.Repeat("x", product.MaxName+1) })
	with("a name that is not UTF-8", func(o *purchase.Order) { o.Purchaser = "\xff" })
	return wrong
}

// lacksOrder returns a reason to skip a strategy that breaks even within one process. Its buyers race, so the
// result of one order shows nothing about the others.
func lacksOrder(w *world) string {
	if _, broken := caughtBy(w, "Rush", promise.Rush); broken {
		return "it does not keep the buyers of a process apart"
	}
	return ""
}

// badOrderAlone checks that an order that cannot be sold fails alone. The strategy must sell the other
// orders that wait at the same time, even if they share its transaction.
func badOrderAlone(tb testing.TB, w *world) {
	const good = 3
	wrong := invalid()
	w.stock(tb, "pear", 1)
	w.stock(tb, "apple", 2_000)
	taken := order("pear", 9, 1)
	taken.IdempotencyKey = "taken"
	require.NoError(tb, expect.ErrorOf(w.instance(stepTimeout, nil).Buy(tb.Context(), taken)))
	events := newEvents()
	shop := w.instance(crowdWait, events.observe)
	stuck := w.keepRowLocked(tb, "apple")
	var all sync.WaitGroup
	buy := func(o purchase.Order, check func(receipt purchase.Receipt, err error)) {
		all.Go(func() { check(shop.Buy(tb.Context(), o)) })
	}
	buy(order("apple", 1, 1), func(_ purchase.Receipt, err error) {
		expect.NoError(tb, err, "the buyer ahead")
	})
	awaitInside(tb, w, events, stuck)
	for what, o := range wrong {
		buy(o, func(receipt purchase.Receipt, err error) {
			if purchase.OutcomeOf(err) != purchase.Failed && !errors.Is(err, purchase.ErrSoldOut) {
				tb.Errorf("an order with %s: %+v, %v; it must fail", what, receipt, err)
			}
		})
	}
	for i := range good {
		buy(order("apple", 2+i, 1), func(_ purchase.Receipt, err error) {
			expect.NoError(tb, err, "next to orders that cannot be sold")
		})
	}
	stuck.release()
	all.Wait()
	w.settle(tb, "apple")
	w.mustBe(tb, "next to orders that cannot be sold", audit.Sums{Stocked: 2_000, Leftover: 2_000 - 1 - good, Records: 1 + good, UnitsSold: 1 + good})
}

// keyOfOneOrder sends different orders at once under one Idempotency-Key, through two processes. The shop must
// sell one of them. Every request of that order gets the same receipt, and all other requests get ErrKeyReused.
func keyOfOneOrder(tb testing.TB, w *world) {
	w.stock(tb, "apple", 40)
	shops := w.idempotent()
	orders := []purchase.Order{order("apple", 1, 1), order("apple", 1, 2), order("apple", 2, 1)} // another amount, another buyer
	var (
		all      sync.WaitGroup
		receipts [12]purchase.Receipt
		errs     [12]error
	)
	for i := range receipts {
		o := orders[i%len(orders)]
		o.IdempotencyKey = "key-1"
		all.Go(func() { receipts[i], errs[i] = shops[i/len(orders)%2].Buy(tb.Context(), o) })
	}
	all.Wait()
	w.settle(tb, "apple")
	sold := map[int]int64{} // maps an order's number to the record's id
	for i, err := range errs {
		switch id := sold[i%len(orders)]; {
		case err == nil && (id == 0 || id == receipts[i].ID):
			sold[i%len(orders)] = receipts[i].ID
		case !errors.Is(err, purchase.ErrKeyReused):
			tb.Errorf("order %d: %+v, %v; want one receipt, or ErrKeyReused", i%len(orders), receipts[i], err)
		}
	}
	expect.Equal(tb, len(sold), 1, "sales of", len(orders), "orders under one key", sold)
	w.mustHaveRecords(tb, "apple", 1)
}

// idempotent returns two processes that look up Idempotency-Keys. If the strategy admits buyers through a
// counter (Traits.AdmitsFirst), both are the same process, since a second one may answer "sold out" to a
// repeated order.
func (w *world) idempotent() (shops [2]*purchase.Idempotent) {
	for i := range shops {
		shops[i] = purchase.NewIdempotent(w.instance(crowdWait, nil), w.engine.DB)
	}
	if w.entry.AdmitsFirst {
		shops[1] = shops[0]
	}
	return shops
}
