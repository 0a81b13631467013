package target

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Crowd describes one burst of requests, and its verdict.
type Crowd struct {
	Buyers     int               `json:"buyers"`
	Sold       int               `json:"sold"`       // buyers with an answer that reports a sale
	Failed     int               `json:"failed"`     // buyers that got a 5xx other than 503, or did not reach the program: certainly no sale
	Unanswered int               `json:"unanswered"` // buyers that got no complete answer to their request, so they may have bought
	AtOnce     int               `json:"at_once"`    // maximum number of commands at the servers at once
	Alone      int               `json:"alone"`      // the same maximum for a buyer that runs alone
	Verdict    verdict.Verdict   `json:"verdict"`    // Holds, Broken, Failed or Inconclusive
	Why        string            `json:"why,omitempty"`
	Undone     string            `json:"-"`                  // text of a problem that is no broken rule; also part of Why
	Findings   []witness.Finding `json:"findings,omitempty"` // broken rules of `never`
	late       int               // buyers without an answer when the time was up; not counted as failures
}

func (c *Crowd) inconclusive(why string, args ...any) {
	c.Verdict, c.Why = verdict.Inconclusive, fmt.Sprintf(why, args...)
}

// judge sets the verdict. The function `never` runs the rules of `never` in oversell.yaml. A buyer without an answer
// may have bought, so judge tries every possible number of sales. Only if each of these breaks a rule is the burst
// broken. No fault is injected, so a failure breaks the promise, too.
func (c *Crowd) judge(never func(app.Told) ([]witness.Finding, error)) error {
	holds, breaks := 0, 0
	for sold := c.Sold; sold <= c.Sold+c.Unanswered && (holds == 0 || breaks == 0); sold++ {
		found, err := never(app.Told{Sold: sold, Failed: c.Failed + c.Unanswered})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			holds++
		} else if breaks++; breaks == 1 { // the first number counts only the certain sales
			c.Findings = found
		}
	}
	failing := c.Failed + c.Unanswered - c.late
	switch {
	case breaks > 0 && holds == 0:
		c.Verdict, c.Why = verdict.Broken, witness.Why(c.Findings)
	case failing > 0:
		c.Verdict, c.Why, c.Findings = verdict.Failed, fmt.Sprintf("%d of %d buyers got a failure or no answer, and every server is healthy", failing, c.Buyers), nil
	case breaks > 0:
		c.inconclusive("whether a rule is broken depends on how many of the %d buyers without an answer have bought: %s", c.Unanswered, witness.Queries(c.Findings))
	case c.Sold == 0:
		c.inconclusive("no buyer was told of a sale")
	case c.AtOnce <= max(c.Alone, 1):
		c.inconclusive("no two buyers' commands were at the servers at once")
	default:
		c.Verdict = verdict.Holds
	}
	return nil
}

// leaves records a problem (`undone`), unless the text is "". A burst that would hold becomes inconclusive.
func (c *Crowd) leaves(undone string) {
	switch {
	case undone == "":
	case c.Verdict == verdict.Holds:
		c.inconclusive("%s", undone)
	default:
		c.Undone = undone
		c.Why += "; " + undone
	}
}
