package verify

import (
	"context"
	"fmt"
	"net/http"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/rush"
)

// duplicates sends each order twice at once with one Idempotency-Key, and once more at the end. A service
// other than this shop must answer with the id of the sale: see docs/guides/test-your-shop.md.
func (t *Target) duplicates(ctx context.Context, c *Cell) error {
	const stock = pairs / 2
	if err := t.restock(ctx, stock); err != nil {
		return err
	}
	orders := t.buyers("order", pairs)
	for i := range orders {
		orders[i].Key = orders[i].Name
	}
	var requests []buyers.Buyer
	for _, o := range orders {
		requests = append(requests, o, o)
	}
	// The stock suffices for both requests of each of the first orders. Otherwise a service that sells repeated
	// orders might refuse the second request as sold out, and the mistake would not show.
	const alone = stock
	twice, err := send(ctx, t.crowd(c.Strategy), requests[:alone])
	if err != nil {
		return err
	}
	rest, err := send(ctx, t.crowd(c.Strategy), requests[alone:])
	if err != nil {
		return err
	}
	twice = append(twice, rest...)
	again, err := send(ctx, t.crowd(c.Strategy), orders)
	if err != nil {
		return err
	}

	came := rush.RepeatedOrders{CompareIDsOnly: true}
	for i := range orders {
		came.Add(twice[2*i:2*i+2], again[i:i+1])
	}
	facts := fault.Facts{
		Answers: came.Final, Last: came.Final, Visits: came.Answers,
		Proof: fmt.Sprintf("of %d orders that were sold under a key, the second request was out before the first was answered; all were sent a third time", came.Overlapping),
	}
	if came.Overlapping == 0 {
		facts.Missed = "no sold order had two overlapping requests"
		if status := twice[0].Status; status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
			facts.Missed = fmt.Sprintf("POST /product/buy with an Idempotency-Key is answered %d: of a service without keys say --no-idempotency-keys", status)
		}
	}
	if err := t.judge(ctx, c, facts, stock); err != nil {
		return err
	}
	c.Verdict, c.Reason = came.Judge(c.Verdict, c.Reason)
	return nil
}
