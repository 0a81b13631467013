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
)

// RunProducts is Run with one burst for several products, which the buyers ask for in turn.
// Product i has the stock stocks[i] and a verdict of its own. The result has the verdict of the
// first product that does not hold, and its reason names the product. A lock or a counter that
// confuses two products breaks one of them.
func RunProducts(ctx context.Context, c Config, products []string, stocks []int64) (Result, error) {
	defer c.startPulse()()
	return c.settled(c.onceEach(ctx, products, stocks))
}

// onceEach restocks the products and sends one burst.
func (c Config) onceEach(ctx context.Context, products []string, stocks []int64) (Result, error) {
	each := make([]Config, len(products)) // as if each product had its own burst
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
	answers, err := c.crowd(ctx)
	if err != nil {
		return Result{}, err
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
	return together(c, answers, all), nil
}

// together returns the row of a burst for several products. each has one result per product.
func together(c Config, answers []buyers.Answer, each []Result) Result {
	var sum audit.Sums
	for _, r := range each {
		sum = sum.Plus(r.Audited)
	}
	row := result(c.Strategy, answers, sum)
	row.MaxOverlap = each[0].MaxOverlap // of the whole burst
	row.Outcomes = Outcomes{}
	for _, r := range each { // includes the buyers after the burst
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
