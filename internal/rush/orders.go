package rush

import (
	"github.com/oversell/oversell/internal/purchase"
)

// Orders is what came of orders that were each sent several times under an
// Idempotency-Key of its own. Each must be one sale, whose receipt every later request
// is answered with.
type Orders struct {
	Known    []Answer // what each buyer knows in the end
	Both     int      // orders sold whose first two requests were under way at once
	Repeated int      // orders with more than one sale
	Denied   int      // orders whose sale a later answer denied
	Altered  int      // orders whose receipts are not the same, byte for byte
	Unclear  int      // orders whose sale a later answer neither showed nor denied
}

// Add adds an order: its first two requests, which were sent at once, and the later
// ones, which were sent when those had been answered.
func (o *Orders) Add(one, other Answer, later ...Answer) {
	all := append([]Answer{one, other}, later...)
	o.Known = append(o.Known, known(all))
	sales, receipts := map[int64]bool{}, map[string]bool{}
	for _, a := range all {
		if a.Outcome == purchase.Sold {
			sales[a.ID], receipts[a.Receipt] = true, true
		}
	}
	denied, unclear := false, false
	bought := one.Outcome == purchase.Sold || other.Outcome == purchase.Sold
	for _, a := range later {
		switch a.Outcome {
		case purchase.Sold:
		case purchase.SoldOut, purchase.LockLost:
			denied = denied || bought
		default:
			unclear = unclear || bought
		}
	}
	switch {
	case len(sales) > 1:
		o.Repeated++
	case denied:
		o.Denied++
	case len(receipts) > 1:
		o.Altered++
	case unclear:
		o.Unclear++
	}
	if len(sales) > 0 && atOnce(one, other) {
		o.Both++
	}
}

// known is what the buyer of an order knows after all answers.
func known(visits []Answer) Answer {
	last := visits[len(visits)-1]
	for _, outcome := range []purchase.Outcome{purchase.Unknown, purchase.Sold} {
		for _, v := range visits {
			if v.Outcome == outcome {
				last = v
			}
		}
	}
	last.Start, last.End = visits[0].Start, visits[0].End
	return last
}

// atOnce: both requests were out before either was answered.
func atOnce(a, b Answer) bool {
	if a.Sent.IsZero() || b.Sent.IsZero() || a.Begun.IsZero() || b.Begun.IsZero() {
		return false
	}
	return a.Sent.Before(b.Begun) && b.Sent.Before(a.Begun)
}
