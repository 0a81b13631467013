package rush

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/verdict"
)

// RunKeyed sends each order under an Idempotency-Key: to every process at once, to
// every process again when that is answered, and once more to the first process after
// restart, which ends it as a crash does and returns the address of its successor. A
// nil restart leaves that out. Each order asks for one unit and must be one sale with
// one receipt, wherever and whenever it was asked for.
func RunKeyed(ctx context.Context, c Config, restart func(context.Context) (url string, err error)) (Result, error) {
	c.Shelf.BaseURL = c.BaseURLs[len(c.BaseURLs)-1] // it outlives the restart
	return c.shown(func() (Result, error) { return c.onceKeyed(ctx, restart) })
}

// onceKeyed leaves in c where the processes are.
func (c *Config) onceKeyed(ctx context.Context, restart func(context.Context) (string, error)) (Result, error) {
	restocked, err := c.restock(ctx)
	if err != nil {
		return Result{}, err
	}
	run := crowdName()
	orders := make([]Buyer, c.Buyers)
	for i := range orders {
		name := fmt.Sprintf("%s-%05d", run, i)
		orders[i] = Buyer{Name: name, Key: name}
	}
	// The first of them while there are units for two of each: one that is sold again must
	// not be refused for want of units.
	few := min(len(orders), int(c.Stock)/len(c.BaseURLs))
	first := append(c.visit(ctx, orders[:few], c.BaseURLs), c.visit(ctx, orders[few:], c.BaseURLs)...)
	again := c.visit(ctx, orders, c.BaseURLs)
	later := [][]Answer{}
	if restart != nil && ctx.Err() == nil {
		url, err := restart(ctx)
		if err != nil {
			return Result{}, fmt.Errorf("restart a process: %w", err)
		}
		later = c.visit(ctx, orders, []string{url})
		c.BaseURLs = append([]string{url}, c.BaseURLs[1:]...)
	}
	var sum Orders
	var all []Answer
	for i := range orders {
		visits := append(first[i], again[i]...)
		if len(later) > 0 {
			visits = append(visits, later[i]...)
		}
		all = append(all, visits...)
		sum.Add(visits[0], visits[1], visits[2:]...)
	}
	r, err := c.judged(ctx, sum.Known, restocked, audit.Overlap(inside(all)))
	if err == nil {
		r.keyed(sum)
	}
	return r, err
}

// visit sends each order to each of the processes at once, and returns its answers.
func (c Config) visit(ctx context.Context, orders []Buyer, urls []string) [][]Answer {
	if len(orders) == 0 {
		return nil
	}
	var all []Buyer
	for _, o := range orders {
		for range urls {
			all = append(all, o)
		}
	}
	crowd := Crowd{BaseURLs: urls, Strategy: c.Strategy, Product: c.Product, Timeout: c.Timeout}
	answers := crowd.Send(ctx, all)
	byOrder := make([][]Answer, len(orders))
	for i := range orders {
		byOrder[i] = answers[i*len(urls) : (i+1)*len(urls) : (i+1)*len(urls)]
	}
	return byOrder
}

// keyed adds what the orders show to the verdict of stock and records.
func (r *Result) keyed(o Orders) {
	sound := r.Verdict == verdict.Holds || r.Verdict == verdict.Inconclusive
	switch {
	case r.Verdict == verdict.Lost: // worse
	case o.Repeated > 0:
		r.Verdict, r.Reason = verdict.Duplicated, fmt.Sprintf("%d orders were sold more than once under one Idempotency-Key; %s", o.Repeated, r.Reason)
	case !sound:
	case o.Denied > 0:
		r.Verdict, r.Reason = verdict.Leaked, fmt.Sprintf("%d buyers who have bought were refused when they sent the same request again", o.Denied)
	case o.Altered > 0:
		r.Verdict, r.Reason = verdict.Leaked, fmt.Sprintf("%d buyers got another receipt for the same sale when they sent the same request again", o.Altered)
	case r.Verdict == verdict.Holds && o.Unclear > 0:
		r.Verdict, r.Reason = verdict.Inconclusive, fmt.Sprintf("%d buyers who have bought were not answered when they sent the same request again", o.Unclear)
	case r.Verdict == verdict.Holds && o.Both == 0:
		r.Verdict, r.Reason = verdict.Inconclusive, "no order was sold whose two requests were under way at once"
	case r.Verdict == verdict.Holds:
		r.Reason += fmt.Sprintf("; %d orders were sold whose two requests were under way at once, and each had one receipt", o.Both)
	}
}
