package rush

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// RunProducts is Run with one burst for several products, which the buyers ask for in turn. Product i has the
// stock stocks[i] and a verdict of its own. The result has the verdict of the first product that does not
// hold, and its reason names the product. A lock or a counter that confuses two products breaks one of them.
// If Config.Lone is set, one more buyer asks for the only unit of another product, and must get it.
func RunProducts(ctx context.Context, c Config, products []string, stocks []int64) (Result, error) {
	defer c.startPulse()()
	return c.settled(c.onceEach(ctx, products, stocks))
}

func (c Config) onceEach(ctx context.Context, products []string, stocks []int64) (Result, error) {
	each := make([]Config, len(products)) // the configuration of each product, as if it had its own burst
	var restocked time.Duration
	for i := range each {
		each[i] = c
		each[i].Product, each[i].Stock = products[i], stocks[i]
		took, err := each[i].restock(ctx)
		if err != nil {
			return Result{}, err
		}
		restocked = max(restocked, took)
	}
	c.Products = products
	if c.Lone != "" {
		if err := c.Shelf.Restock(ctx, c.Lone, 1); err != nil {
			return Result{}, err
		}
	}
	answers, err := c.crowd(ctx)
	if err != nil {
		return Result{}, err
	}
	var lone []buyers.Answer
	if i := c.Buyers / 2; c.Lone != "" {
		lone, answers = answers[i:i+1:i+1], slices.Concat(answers[:i], answers[i+1:])
	}
	overlap := Overlap(answers)
	var all []Result
	for i := range each {
		var of []buyers.Answer
		for n := i; n < len(answers); n += len(each) {
			of = append(of, answers[n])
		}
		r, err := each[i].judged(ctx, of, of, restocked, overlap)
		if err != nil {
			return Result{}, err
		}
		all = append(all, r)
	}
	row := together(c, answers, all)
	if row.Verdict.IsBreak() {
		return row, nil
	}
	for _, a := range lone {
		c.judgeLone(&row, a, slices.MaxFunc(answers, func(a, b buyers.Answer) int { return a.End.Compare(b.End) }).End)
	}
	return row, nil
}

// judgeLone judges the answer to the only buyer of a product with one unit. `over` is the time of the last
// answer to the other buyers. If the lone buyer gave up long after `over`, no other buyer was in its way, so
// the shop has stalled.
func (c Config) judgeLone(row *Result, a buyers.Answer, over time.Time) {
	got := map[purchase.Outcome]verdict.Verdict{purchase.SoldOut: verdict.Leaked, purchase.Failed: verdict.Failed, purchase.Sold: verdict.Holds}[a.Outcome]
	switch {
	case got == verdict.Holds:
		return
	case got != "":
	case row.Verdict != verdict.Holds:
		return
	case a.Outcome == purchase.Busy && (a.End.Sub(a.Start) < c.Wait/2 || over.Sub(a.Start) < c.Wait/2 && c.pulse.Delays().Mostly(a.Start, a.End) == ""):
		got = verdict.Stalled
	default:
		got = verdict.Inconclusive
	}
	row.Verdict = got
	row.Reason = fmt.Sprintf("product %q has a unit left, and its only buyer was answered %s while others wanted other products: %s", c.Lone, a.Outcome, a.Detail)
}

// together returns the row of a burst for several products. `each` contains the result of each product.
func together(c Config, answers []buyers.Answer, each []Result) Result {
	var sum audit.Sums
	for _, r := range each {
		sum = sum.Plus(r.Audited)
	}
	row := result(c.Strategy, answers, sum)
	row.MaxOverlap = each[0].MaxOverlap // overlap of the whole burst
	row.Outcomes = Outcomes{}
	for _, r := range each { // these results include the buyers after the burst
		row.add(r.Outcomes)
		row.Lost, row.Untold = row.Lost+r.Lost, row.Untold+r.Untold
		row.FirstError = cmp.Or(row.FirstError, r.FirstError)
	}
	row.Reason = fmt.Sprintf("%d units of %d products sold of %d stocked, %d left", sum.UnitsSold, len(each), sum.Stocked, sum.Leftover)
	worst := slices.IndexFunc(each, func(r Result) bool { return r.Verdict.IsBreak() })
	if worst < 0 {
		worst = max(0, slices.IndexFunc(each, func(r Result) bool { return r.Verdict != verdict.Holds }))
	}
	if row.Verdict = each[worst].Verdict; row.Verdict != verdict.Holds {
		row.Reason = fmt.Sprintf("product %q: %s", c.Products[worst], each[worst].Reason)
	}
	return row
}
