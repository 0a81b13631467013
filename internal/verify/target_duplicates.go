package verify

import (
	"context"
	"fmt"
	"net/http"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/rush"
	"github.com/oversell/oversell/internal/verdict"
)

// duplicates sends each order twice at once under one key, and once more when
// all is over.
func (t *Target) duplicates(ctx context.Context, c *Cell) error {
	const stock = pairs / 2
	if err := t.restock(ctx, stock); err != nil {
		return err
	}
	orders := t.buyers("order", pairs)
	for i := range orders {
		orders[i].Key = orders[i].Name
	}
	var twice []rush.Buyer
	for _, o := range orders {
		twice = append(twice, o, o)
	}
	came, err := send(ctx, t.crowd(c.Strategy), twice)
	if err != nil {
		return err
	}
	again, err := send(ctx, t.crowd(c.Strategy), orders)
	if err != nil {
		return err
	}

	var p rush.Orders
	for i := range orders {
		p.Add(came[2*i], came[2*i+1], again[i])
	}
	facts := fault.Facts{
		Answers: p.Known, Last: p.Known,
		Proof: fmt.Sprintf("of %d orders that were sold under a key, the second request was out before the first was answered; all were sent a third time", p.Both),
	}
	if p.Both == 0 {
		facts.Missed = "no order was sold whose two requests were under way at once"
		if status := came[0].Status; status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
			facts.Missed = fmt.Sprintf("POST /product/buy with an Idempotency-Key is answered %d: of a service without keys say --no-idempotency-keys", status)
		}
	}
	if err := t.judge(ctx, c, facts, stock); err != nil {
		return err
	}
	switch {
	case c.Verdict == verdict.Lost: // worse
	case p.Repeated > 0:
		c.Verdict, c.Reason = verdict.Duplicated, fmt.Sprintf("%d orders were sold more than once under one Idempotency-Key; %s", p.Repeated, c.Reason)
	case p.Denied > 0 && (c.Verdict == verdict.Holds || c.Verdict == verdict.Inconclusive):
		c.Verdict, c.Reason = verdict.Leaked, fmt.Sprintf("%d buyers who have bought were refused when they sent the same request again", p.Denied)
	}
	return nil
}
