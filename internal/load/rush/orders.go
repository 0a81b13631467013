package rush

import (
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// Orders is what came of orders that were each sent several times under an
// Idempotency-Key of its own. Each must be one sale, whose receipt every later request
// is answered with.
type Orders struct {
	// ByID is of a service whose receipts need not be the same, byte for byte: it may say
	// when it answered. The id of the sale must be the same in any case.
	ByID bool

	Visits   []buyers.Answer // all answers
	Known    []buyers.Answer // those that count for each buyer in the end; see known
	Both     int             // orders whose requests were under way at once when it was sold
	Repeated int             // orders with more than one sale
	Denied   int             // orders whose sale a later answer denied
	Altered  int             // orders whose receipts are not the same
	Unclear  int             // orders whose sale a later answer neither showed nor denied
}

// Add adds an order. The requests of a round were sent at once, when those of the round
// before had been answered.
func (o *Orders) Add(rounds ...[]buyers.Answer) {
	var bought, both, denied, unclear bool
	receipts := map[string]bool{}
	for _, round := range rounds {
		sold := false
		for _, a := range round {
			switch a.Outcome {
			case purchase.Sold:
				sold, receipts[a.Receipt] = true, true
			case purchase.SoldOut, purchase.LockLost:
				denied = denied || bought
			default:
				unclear = unclear || bought
			}
		}
		both = both || sold && !bought && atOnce(round)
		bought = bought || sold
	}
	visits := slices.Concat(rounds...)
	end := known(visits)
	o.Visits, o.Known = append(o.Visits, visits...), append(o.Known, end...)
	switch {
	case len(end) > 1:
		o.Repeated++
	case denied:
		o.Denied++
	case len(receipts) > 1 && !o.ByID:
		o.Altered++
	case unclear:
		o.Unclear++
	}
	if both {
		o.Both++
	}
}

// known is what the buyer of an order knows after all answers: its sales, each by the
// answer that told it first; without a sale the answer that leaves open whether there is
// one; without that the last.
func known(visits []buyers.Answer) []buyers.Answer {
	var sales []buyers.Answer
	for _, v := range visits {
		same := func(sale buyers.Answer) bool { return sale.ID == v.ID }
		if v.Outcome == purchase.Sold && !slices.ContainsFunc(sales, same) {
			sales = append(sales, v)
		}
	}
	if len(sales) > 0 {
		return sales
	}
	if i := slices.IndexFunc(visits, func(v buyers.Answer) bool { return v.Outcome == purchase.Unknown }); i >= 0 {
		return visits[i : i+1]
	}
	return visits[len(visits)-1:]
}

// atOnce: there are two requests or more, and all were out before one was answered.
func atOnce(round []buyers.Answer) bool {
	for _, a := range round {
		for _, b := range round {
			if a.Sent.IsZero() || b.Begun.IsZero() || !a.Sent.Before(b.Begun) {
				return false
			}
		}
	}
	return len(round) > 1
}

// Judge judges as JudgeRepeats, for orders whose first two requests were sent at once. v stays
// verdict.Holds only if at least one order was sold while both requests were in flight.
func (o Orders) Judge(v verdict.Verdict, reason string) (verdict.Verdict, string) {
	v, reason = o.JudgeRepeats(v, reason)
	switch {
	case v != verdict.Holds:
	case o.Both == 0:
		return verdict.Inconclusive, "no order was sold whose two requests were under way at once"
	default:
		reason = fmt.Sprintf("%s; %d orders were sold whose two requests were under way at once, and each had one receipt", reason, o.Both)
	}
	return v, reason
}

// JudgeRepeats returns the verdict of stock and records, v, and its reason, after it has judged
// the repeated orders. A lost sale is worse than each of their breaks and stays. An
// inconclusive order does not replace a break.
func (o Orders) JudgeRepeats(v verdict.Verdict, reason string) (verdict.Verdict, string) {
	sound := v == verdict.Holds || v == verdict.Inconclusive
	switch {
	case v == verdict.Lost:
	case o.Repeated > 0:
		return verdict.Duplicated, fmt.Sprintf("%d orders were sold more than once under one Idempotency-Key; %s", o.Repeated, reason)
	case !sound:
	case o.Denied > 0:
		return verdict.Leaked, fmt.Sprintf("%d buyers who have bought were refused when they sent the same request again", o.Denied)
	case o.Altered > 0:
		return verdict.Leaked, fmt.Sprintf("%d buyers got another receipt for the same sale when they sent the same request again", o.Altered)
	case v == verdict.Inconclusive:
	case o.Unclear > 0:
		return verdict.Inconclusive, fmt.Sprintf("%d buyers who have bought were not answered when they sent the same request again", o.Unclear)
	}
	return v, reason
}
