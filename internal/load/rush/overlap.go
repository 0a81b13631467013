package rush

import (
	"cmp"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// inside returns the answers with the times at which each buy was inside the shop, if the shop
// says so for each sale. Else the times are the buyers' own.
//
// The buyers' times overstate the overlap: they count every buyer that has sent and has no
// answer, though the service may take one request at a time.
func inside(answers []buyers.Answer) []audit.Answer {
	says := slices.ContainsFunc(answers, buyers.Answer.SaysWhen) && !slices.ContainsFunc(answers, func(a buyers.Answer) bool {
		return a.Outcome == purchase.Sold && !a.SaysWhen()
	})
	if !says {
		return buyers.Answers(answers)
	}
	var within []audit.Answer
	for _, a := range answers {
		if a.SaysWhen() { // else it was refused at the door
			a.Start, a.End = a.Inside[0], a.Inside[1]
			within = append(within, a.Answer)
		}
	}
	return within
}

// Overlap is audit.Overlap, by the times inside the shop where it says them.
func Overlap(answers []buyers.Answer) int { return audit.Overlap(inside(answers)) }

// ProgressOf is audit.ProgressOf of all visits, by the times inside the shop where it
// says them. What a purchase takes is that of the answers, which are the visits without
// those that repeat a request: a receipt is faster the second time. A crowd to which
// nothing was sold says nothing of what a purchase takes: usual does.
func ProgressOf(visits, answers []buyers.Answer, usual, lease, wait time.Duration) audit.Progress {
	p := audit.ProgressOf(inside(visits), lease, wait)
	p.Usual = cmp.Or(audit.Usual(inside(answers)), usual)
	return p
}
