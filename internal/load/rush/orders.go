package rush

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/plural"
	"github.com/oversell/oversell/internal/purchase"
)

// RepeatedOrders counts orders that were sent several times, each under its own Idempotency-Key. Each order
// must be one sale, and every later request must get the same receipt as the first.
type RepeatedOrders struct {
	// CompareIDsOnly accepts receipts that differ, for example in the time of the answer. The id
	// of the sale must still be the same.
	CompareIDsOnly bool

	Answers           []buyers.Answer // all answers
	Final             []buyers.Answer // the answer of each order that counts for the audit
	Overlapping       int             // orders whose requests overlapped when the order was sold
	Repeated          int             // orders with more than one sale
	Denied            int             // orders whose sale a later answer denied
	DifferentReceipts int             // orders with different receipts
	Unclear           int             // orders whose sale a later answer neither showed nor denied
	Errors            int             // requests that were answered with an error of the shop
}

// Add adds the answers to one order. All requests of a round were sent at once, after all answers to the round
// before it.
func (o *RepeatedOrders) Add(rounds ...[]buyers.Answer) {
	var bought, isOverlapping, denied, unclear bool
	receipts := map[string]bool{}
	for _, round := range rounds {
		sold := false
		for _, a := range round {
			if a.IsError() {
				o.Errors++
			}
			switch {
			case a.Outcome == purchase.Sold:
				sold, receipts[a.Receipt] = true, true
			case a.Outcome == purchase.SoldOut, a.Outcome == purchase.LockLost, a.Status == http.StatusUnprocessableEntity:
				denied = denied || bought
			default:
				unclear = unclear || bought
			}
		}
		isOverlapping = isOverlapping || sold && !bought && overlapping(round)
		bought = bought || sold
	}
	visits := slices.Concat(rounds...)
	final := finalAnswers(visits)
	o.Answers, o.Final = append(o.Answers, visits...), append(o.Final, final...)
	switch {
	case len(final) > 1:
		o.Repeated++
	case denied:
		o.Denied++
	case len(receipts) > 1 && !o.CompareIDsOnly:
		o.DifferentReceipts++
	case unclear:
		o.Unclear++
	}
	if isOverlapping {
		o.Overlapping++
	}
}

// finalAnswers returns the first answer that reported each sale. Without a sale it returns the first answer
// with outcome Unknown. If there is none either, it returns the last answer.
func finalAnswers(visits []buyers.Answer) []buyers.Answer {
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

// overlapping reports whether a round has two or more requests that were all sent before the first answer.
func overlapping(round []buyers.Answer) bool {
	for _, a := range round {
		for _, b := range round {
			if a.Sent.IsZero() || b.AnswerBegan.IsZero() || !a.Sent.Before(b.AnswerBegan) {
				return false
			}
		}
	}
	return len(round) > 1
}

// Judge extends JudgeRepeats for orders whose first two requests were sent at once, to healthy servers. An
// error counts even if a later request of its order is served. The verdict Holds stays only if at least one
// order was sold while both requests were in flight.
func (o RepeatedOrders) Judge(v verdict.Verdict, reason string) (verdict.Verdict, string) {
	v, reason = o.JudgeRepeats(v, reason)
	switch {
	case !v.IsBreak() && o.Errors > 0:
		return verdict.Failed, fmt.Sprintf("%s answered with an error; later requests of these orders were served", plural.Count(o.Errors, "request"))
	case v != verdict.Holds:
	case o.Overlapping == 0:
		return verdict.Inconclusive, "no sold order had two overlapping requests"
	default:
		reason = fmt.Sprintf("%s; with two overlapping requests, %s sold, each with one receipt", reason, orders(o.Overlapping))
	}
	return v, reason
}

// JudgeRepeats takes the verdict on stock and records. It returns a worse one if the shop treats a repeated
// order wrongly. The verdict Lost stays. Any other break stays unless an order was sold more than once.
func (o RepeatedOrders) JudgeRepeats(v verdict.Verdict, reason string) (verdict.Verdict, string) {
	notBroken := v == verdict.Holds || v == verdict.Inconclusive
	switch {
	case v == verdict.Lost:
	case o.Repeated > 0:
		return verdict.Duplicated, fmt.Sprintf("%s sold more than once under one Idempotency-Key; %s", orders(o.Repeated), reason)
	case !notBroken:
	case o.Denied > 0:
		return verdict.Leaked, plural.Count(o.Denied, "sold order") + " got a refusal to a repeated request"
	case o.DifferentReceipts > 0:
		return verdict.Leaked, plural.Count(o.DifferentReceipts, "sold order") + " got a different receipt for a repeated request"
	case v == verdict.Inconclusive:
	case o.Unclear > 0:
		return verdict.Inconclusive, plural.Count(o.Unclear, "sold order") + " got no answer to a repeated request"
	}
	return v, reason
}

func orders(n int) string { return plural.Count(n, "order") + plural.Word(n, " was", " were") }
