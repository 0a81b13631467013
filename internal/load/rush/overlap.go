package rush

import (
	"cmp"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/purchase"
)

// inside returns the answers with the times at which each purchase was inside the shop. If the shop does not
// report these for each sale, the times are those that the buyers measured.
//
// The buyers' times overstate the overlap: every buyer that waits for an answer counts, although the service
// may handle one request at a time.
func inside(answers []buyers.Answer) []audit.Answer {
	says := slices.ContainsFunc(answers, buyers.Answer.SaysWhen) && !slices.ContainsFunc(answers, func(a buyers.Answer) bool {
		return a.Outcome == purchase.Sold && !a.SaysWhen()
	})
	if !says {
		return buyers.Answers(answers)
	}
	var within []audit.Answer
	for _, a := range answers {
		if a.SaysWhen() { // without times, the shop refused the buyer before its strategy ran
			a.Start, a.End = a.Inside[0], a.Inside[1]
			within = append(within, a.Answer)
		}
	}
	return within
}

// Overlap returns the largest number of purchases in flight at once (audit.Overlap): inside the shop, if it
// reports that.
func Overlap(answers []buyers.Answer) int { return audit.Overlap(inside(answers)) }

// ProgressOf returns audit.ProgressOf for all visits, with the times inside the shop if the shop reports them. The
// usual time of a purchase comes from `answers`: the visits without repeated requests, which are faster. If the
// burst bought nothing, the usual time is `usual`. `starved` contains the delays of this process during the burst.
func ProgressOf(visits, answers []buyers.Answer, usual, lease, wait time.Duration, starved pulse.Delays) audit.Progress {
	p := audit.ProgressOf(inside(visits), lease, wait, starved)
	p.Usual = cmp.Or(audit.Usual(inside(answers)), usual)
	return p
}
