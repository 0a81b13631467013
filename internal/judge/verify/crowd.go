package verify

import (
	"context"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
)

// processesOf returns how many processes the rush of a condition uses. It returns 0 if the condition is not a
// rush (a burst of buyers without a fault).
func processesOf(f promise.Condition) int {
	switch f {
	case promise.Rush, promise.Units, promise.TwoProducts:
		return 1
	case promise.TwoProcesses, promise.Duplicates:
		return 2
	}
	return 0
}

// Sizes of the rushes: enough buyers to interfere with each other, and more demand than stock.
const (
	unitsStock, unitsBuyers = 201, 90 // the buyers ask for 720 units in orders of two sizes
	firstStock, secondStock = 30, 20
	productsBuyers          = 100 // half of them for each product
	keyedStock, keyedOrders = 32, 36
)

// sizes returns the sizes of the orders under the condition "units". The stock is odd, so at the end one unit
// is left, too little for any order. Before that, large orders are refused while small ones can still be
// served. This exposes a strategy that only checks that something is left. It also exposes one that does not
// return the units of a refused order, unless small orders are faster six times in a row.
func sizes() []int64 { return []int64{2, 14} }

// otherOf returns the name of a second product. It begins with the first name, so a strategy that wrongly
// searches keys by prefix finds the keys of both.
func otherOf(product string) string { return product + "/b" }

// runCrowd runs the rush c, with the numbers of buyers and units that the condition needs. `restart` ends the
// first process and returns the address of its successor.
func runCrowd(
	ctx context.Context, f promise.Condition, c rush.Config, restart func(context.Context) (url string, err error),
) (r rush.Result, err error) {
	switch f {
	case promise.Units:
		c.Stock, c.Buyers, c.Sizes = unitsStock, unitsBuyers, sizes()
		r, err = rush.Run(ctx, c)
	case promise.TwoProducts:
		c.Buyers, c.Lone = productsBuyers, otherOf(otherOf(c.Product))
		r, err = rush.RunProducts(ctx, c, []string{c.Product, otherOf(c.Product)}, []int64{firstStock, secondStock})
	case promise.Duplicates:
		c.Stock, c.Buyers = keyedStock, keyedOrders
		r, err = rush.RunKeyed(ctx, c, restart)
	default:
		r, err = rush.Run(ctx, c)
	}
	return r, err
}

// crash kills the first of the two shops and starts another on the same servers.
func (l *lane) crash(ctx context.Context) (url string, err error) {
	l.pair.A, err = l.servers.Restart(ctx, l.pair.A, l.Launch, l.times, l.needs)
	if err != nil {
		return "", err
	}
	return l.pair.A.URL(), nil
}

// apart completes a cell under the condition "two-products", unless its rush shows a violation. It stops a
// buyer of one product inside its critical section, with a failpoint of the shop. Buyers of the other product
// must not wait for it.
func (l *lane) apart(ctx context.Context, j job, cell *Cell) (err error) {
	if j.name != promise.TwoProducts || cell.Verdict.IsBreak() {
		return nil
	}
	bed := &fault.Testbed{
		Subject: j.strategy.Subject, Product: productOf(j), Servers: l.servers, A: l.pair.A, B: l.pair.B, Times: l.times,
	}
	facts, err := l.heldApart(ctx, bed)
	if err != nil {
		return err
	}
	cell.heldApart(facts)
	return nil
}

func (l *lane) heldApart(ctx context.Context, bed *fault.Testbed) (_ fault.Facts, err error) {
	shelf := rush.Target{BaseURL: l.pair.A.URL()}
	for _, name := range []string{bed.Product, otherOf(bed.Product)} {
		if err := shelf.Restock(ctx, name, firstStock); err != nil {
			return fault.Facts{}, err
		}
	}
	if bed.Log, err = history.NewLog(""); err != nil {
		return fault.Facts{}, err
	}
	l.pair.RecordTo(bed.Log)
	defer l.pair.RecordTo(nil)
	return bed.Apart(ctx, otherOf(bed.Product))
}

func (c *Cell) heldApart(f fault.Facts) {
	switch {
	case f.Stalled != "":
		c.Verdict, c.Reason = verdict.Stalled, f.Stalled
	case f.Missed != "":
		c.Verdict, c.Reason = verdict.Inconclusive, f.Missed
	default:
		c.Struck += "; " + f.Proof
	}
}
