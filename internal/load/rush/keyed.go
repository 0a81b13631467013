package rush

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/load/buyers"
)

// RunKeyed sends each order under an Idempotency-Key, in three rounds: to every process at once, to every
// process again, and to the first process after a restart. `restart` kills that process and returns the
// address of its successor; if it is nil, there is no third round. Each order asks for one unit, and must be
// one sale with one receipt in all rounds. Every second order names no buyer.
func RunKeyed(ctx context.Context, c Config, restart func(context.Context) (url string, err error)) (Result, error) {
	c.Shelf.BaseURL = c.BaseURLs[len(c.BaseURLs)-1] // the last process is the one that is not restarted
	c.isKeyed = true
	defer c.startPulse()()
	return c.settled(c.onceKeyed(ctx, restart))
}

// onceKeyed restocks and sends the orders. After a restart it stores the new address of the process in c.
func (c *Config) onceKeyed(ctx context.Context, restart func(context.Context) (string, error)) (Result, error) {
	restocked, err := c.restock(ctx)
	if err != nil {
		return Result{}, err
	}
	run := crowdName()
	orders := make([]buyers.Buyer, c.Buyers)
	for i := range orders {
		name := fmt.Sprintf("%s-%05d", run, i)
		orders[i] = buyers.Buyer{Name: name, Key: name}
		if i%2 == 1 { // without a name, the shop chooses one: the same for each request of the order
			orders[i].Name = ""
		}
	}
	rounds, err := c.rounds(ctx, orders, restart)
	if err != nil {
		return Result{}, err
	}
	var came RepeatedOrders
	for i := range orders {
		var of [][]buyers.Answer
		for _, round := range rounds {
			of = append(of, round[i])
		}
		came.Add(of...)
	}
	r, err := c.judged(ctx, came.Final, came.Answers, restocked, Overlap(came.Answers))
	if err == nil {
		r.Crowd = len(orders)
		r.Verdict, r.Reason = came.Judge(r.Verdict, r.Reason)
	}
	return r, err
}

// rounds sends the orders in three rounds. It returns, for each order, the answers in each round.
func (c *Config) rounds(ctx context.Context, orders []buyers.Buyer, restart func(context.Context) (string, error)) ([][][]buyers.Answer, error) {
	// In the first round, the stock must be enough to sell each order once per process. Otherwise the answer
	// "sold out" would hide a second sale.
	few := min(len(orders), int(c.Stock)/len(c.BaseURLs))
	first := append(visit(ctx, c.sender(c.BaseURLs), orders[:few]), visit(ctx, c.sender(c.BaseURLs), orders[few:])...)
	again := visit(ctx, c.sender(c.BaseURLs), orders)
	if restart == nil || ctx.Err() != nil {
		return [][][]buyers.Answer{first, again}, nil
	}
	url, err := restart(ctx)
	if err != nil {
		return nil, fmt.Errorf("restart a process: %w", err)
	}
	c.BaseURLs = append([]string{url}, c.BaseURLs[1:]...)
	return [][][]buyers.Answer{first, again, visit(ctx, c.sender(c.BaseURLs[:1]), orders)}, nil
}

// visit sends each order to all processes of the sender at once. It returns the answers to each order.
func visit(ctx context.Context, sender buyers.Sender, orders []buyers.Buyer) [][]buyers.Answer {
	if len(orders) == 0 {
		return nil
	}
	var all []buyers.Buyer
	for _, o := range orders {
		for range sender.URLs {
			all = append(all, o)
		}
	}
	answers, processes := sender.AtOnce(ctx, all), len(sender.URLs)
	byOrder := make([][]buyers.Answer, len(orders))
	for i := range orders {
		byOrder[i] = answers[i*processes : (i+1)*processes : (i+1)*processes]
	}
	return byOrder
}
