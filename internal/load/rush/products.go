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

// RunProducts is Run with one crowd for several products, for which the buyers ask in turn.
// Each product has a stock of its own, stocks[i], and is judged by itself. The verdict is that
// of the first product that does not hold, and the reason names it. A lock or a counter that
// confuses two products breaks one of them.
func RunProducts(ctx context.Context, c Config, products []string, stocks []int64) (Result, error) {
	return c.shown(func() (Result, error) { return c.onceEach(ctx, products, stocks) })
}

// onceEach restocks the products and sends one crowd.
func (c Config) onceEach(ctx context.Context, products []string, stocks []int64) (Result, error) {
	each := make([]Config, len(products)) // as if each product had a crowd of its own
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
	answers := c.crowd(ctx)
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

// together is the row of a crowd for several products. each has the result of one product.
func together(c Config, answers []buyers.Answer, each []Result) Result {
	var sum audit.Report
	for _, r := range each {
		sum = sum.Plus(r.Audited)
	}
	row := result(c.Strategy, answers, sum)
	row.MaxOverlap = each[0].MaxOverlap // of the whole crowd
	row.Outcomes = Outcomes{}
	for _, r := range each { // those who came after the crowd are in it
		row.add(r.Outcomes)
		row.Lost, row.Untold = row.Lost+r.Lost, row.Untold+r.Untold
		row.FirstError = cmp.Or(row.FirstError, r.FirstError)
	}
	row.Reason = fmt.Sprintf("%d units of %d products sold of %d stocked, %d left", sum.UnitsSold, len(each), sum.Stocked, sum.Leftover)
	worst := slices.IndexFunc(each, Result.broke)
	if worst < 0 {
		worst = max(0, slices.IndexFunc(each, func(r Result) bool { return r.Verdict != verdict.Holds }))
	}
	if row.Verdict = each[worst].Verdict; row.Verdict != verdict.Holds {
		row.Reason = fmt.Sprintf("of %q: %s", c.Products[worst], each[worst].Reason)
	}
	return row
}
