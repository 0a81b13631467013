package verify

import (
	"context"
	"fmt"
	"net/http"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/purchase"
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

	var p pairCount
	for i := range orders {
		p.add(came[2*i], came[2*i+1], again[i])
	}
	facts := fault.Facts{
		Answers: p.known, Last: p.known,
		Proof: fmt.Sprintf("of %d orders that were sold under a key, the second request was out before the first was answered; all were sent a third time", p.both),
	}
	if p.both == 0 {
		facts.Missed = "no order was sold whose two requests were under way at once"
		if status := came[0].Status; status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
			facts.Missed = fmt.Sprintf("POST /product/buy with an Idempotency-Key is answered %d: without keys, give --fault rush,client-gone,latency", status)
		}
	}
	if err := t.judge(ctx, c, facts, stock); err != nil {
		return err
	}
	switch {
	case c.Verdict == verdict.Lost: // worse
	case p.repeated > 0:
		c.Verdict, c.Reason = verdict.Duplicated, fmt.Sprintf("%d orders were sold more than once under one Idempotency-Key; %s", p.repeated, c.Reason)
	case p.changed > 0 && (c.Verdict == verdict.Holds || c.Verdict == verdict.Inconclusive):
		c.Verdict, c.Reason = verdict.Leaked, fmt.Sprintf("%d buyers who have bought were refused when they sent the same request again", p.changed)
	}
	return nil
}

// pairCount is what came of orders that were sent twice at once and once more.
type pairCount struct {
	known    []rush.Answer // what each buyer knows in the end
	both     int           // orders sold whose two requests were under way at once
	repeated int           // orders with more than one sale
	changed  int           // orders whose sale a later answer denied
}

func (p *pairCount) add(one, other, later rush.Answer) {
	p.known = append(p.known, oneOf(one, other, later))
	sales := map[int64]bool{}
	for _, a := range []rush.Answer{one, other, later} {
		if a.Outcome == purchase.Sold {
			sales[a.ID] = true
		}
	}
	switch {
	case len(sales) > 1:
		p.repeated++
	case (one.Outcome == purchase.Sold || other.Outcome == purchase.Sold) && later.Outcome != purchase.Sold:
		p.changed++
	}
	if len(sales) > 0 && atOnce(one, other) {
		p.both++
	}
}

// oneOf is what the buyer of an order knows after all three answers.
func oneOf(visits ...rush.Answer) rush.Answer {
	known := visits[len(visits)-1]
	for _, outcome := range []purchase.Outcome{purchase.Unknown, purchase.Sold} {
		for _, v := range visits {
			if v.Outcome == outcome {
				known = v
			}
		}
	}
	known.Start, known.End = visits[0].Start, visits[0].End
	return known
}

// atOnce: both requests were out before either was answered.
func atOnce(a, b rush.Answer) bool {
	if a.Sent.IsZero() || b.Sent.IsZero() || a.Begun.IsZero() || b.Begun.IsZero() {
		return false
	}
	return a.Sent.Before(b.Begun) && b.Sent.Before(a.Begun)
}
