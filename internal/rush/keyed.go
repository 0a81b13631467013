package rush

import (
	"context"
	"fmt"
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
	rounds := [][][]Answer{first, again} // each by order
	if restart != nil && ctx.Err() == nil {
		url, err := restart(ctx)
		if err != nil {
			return Result{}, fmt.Errorf("restart a process: %w", err)
		}
		rounds = append(rounds, c.visit(ctx, orders, []string{url}))
		c.BaseURLs = append([]string{url}, c.BaseURLs[1:]...)
	}
	var came Orders
	for i := range orders {
		var of [][]Answer
		for _, round := range rounds {
			of = append(of, round[i])
		}
		came.Add(of...)
	}
	r, err := c.judged(ctx, came.Known, came.Visits, restocked, Overlap(came.Visits))
	if err == nil {
		r.Crowd = len(orders)
		r.Verdict, r.Reason = came.Judge(r.Verdict, r.Reason)
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
