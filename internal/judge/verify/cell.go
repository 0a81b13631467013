package verify

import (
	"cmp"
	"fmt"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/plural"
)

// A Cell is one strategy under one condition, such as a fault, with the promised and the observed verdict.
type Cell struct {
	Strategy   string            `json:"strategy"`
	Fault      promise.Condition `json:"fault"`
	Promise    verdict.Verdict   `json:"promise"`
	Verdict    verdict.Verdict   `json:"verdict"`
	OK         bool              `json:"ok"`
	Evidence   string            `json:"evidence"`
	Replay     string            `json:"replay"`
	DurationMS int64             `json:"duration_ms"`

	Acknowledged int64                   `json:"acknowledged"`         // sales acknowledged to buyers during the fault and after it
	Lost         int64                   `json:"lost"`                 // acknowledged sales without a record
	Verdicts     map[verdict.Verdict]int `json:"verdicts,omitempty"`   // how often each verdict was seen, if the test was run more than once
	NoPromise    string                  `json:"no_promise,omitempty"` // why there is no promise
	BoundMS      int64                   `json:"next_sale_bound_ms"`   // upper limit of next_sale_ms; 0 without a fault

	HarnessError string `json:"harness_error,omitempty"` // why the test itself failed, so that the strategy's behaviour is unknown

	Reason     string        `json:"reason"`                // reason of the verdict, in one sentence
	Struck     string        `json:"struck"`                // proof that the fault took effect
	Audited    audit.Sums    `json:"books"`                 // stock and records at the end
	NextSaleMS *int64        `json:"next_sale_ms"`          // time from the fault to the next sale to another buyer; null if there was none
	TwoHolders *Overlap      `json:"two_holders,omitempty"` // the first two buyers that held the lock at the same time
	StruckMS   *float64      `json:"struck_ms,omitempty"`   // time of the fault in milliseconds since the first event, as in two_holders
	History    string        `json:"history,omitempty"`     // path of the history file
	Witness    *DrawnWitness `json:"witness,omitempty"`     // the schedule with which an exploration found a violation

	Linearizable linear.Result `json:"linearizable,omitempty"`
	Picture      string        `json:"picture,omitempty"` // path of a picture that shows why the answers are not linearizable

	disturbance string // why this run of the test proves nothing; "" if it counts
	isCertain   bool   // the verdict needs no second run
	goesOn      bool   // buyers are still not served after the repair, which no promise covers
}

// rushConfig returns the rush of the tutorial: 200 buyers for 100 units. `times` are the waits and leases of
// the shops; zero means unknown.
func rushConfig(urls []string, shelf rush.Target, auditor rush.Auditor, strategy string, times fault.Times) rush.Config {
	return rush.Config{
		BaseURLs: urls, Shelf: shelf, Auditor: auditor, Strategy: strategy, Product: "verify-" + strategy,
		Stock: 100, Buyers: 200, Timeout: times.Wait + rush.Silence, Wait: times.Wait, Lease: times.Lease, Counts: countsOf(strategy), Progress: func(int) {}, Healthy: times != fault.Times{},
	}
}

// rushCell returns the cell of a rush (burst of buyers) that another function has run.
func rushCell(strategy string, f promise.Condition, promised verdict.Verdict, engine string, r rush.Result, processes int) Cell {
	c := Cell{
		Strategy: strategy, Fault: f, Promise: promised, DurationMS: int64(r.DurationMS),
		Replay: fmt.Sprintf("shop verify --engine %s --strategy %s --fault %s", engine, strategy, f),
	}
	c.rushed(r, processes)
	c.Evidence = c.evidence()
	c.Settle()
	return c
}

// Settle sets OK: whether the verdict is as promised.
func (c *Cell) Settle() {
	c.OK = c.Verdict != verdict.Inconclusive && !c.goesOn && (c.Promise == "" && !c.Verdict.NeverChance() || c.Promise.Keeps(c.Verdict))
}

// rushed copies the verdict of the rush. `processes` is 0 for a running service, which does not report the number.
func (c *Cell) rushed(r rush.Result, processes int) {
	c.Verdict, c.Reason = r.Verdict, r.Reason
	c.playedBy(r)
	at := ""
	switch {
	case processes == 1:
		at = " at 1 process"
	case processes > 1:
		at = fmt.Sprintf(" at %d processes", processes)
	}
	c.Struck = fmt.Sprintf("%s at once%s, at most %d inside", plural.Count(r.Crowd, "buyer"), at, r.MaxOverlap)
	c.Audited = r.Audited
}

// playedBy stores whether the rush must be run again.
func (c *Cell) playedBy(r rush.Result) {
	c.disturbance, c.isCertain = r.Disturbed(), r.Verdict == verdict.Stalled && !r.IsTimed()
}

// judge compares the answers with stock and records. `lost` is the number of receipts without a record,
// `untold` the number of records that no receipt names (audit.Compare). A buyer may fail under the fault, but
// each answer must be true, and buyers after the repair must be served.
func (c *Cell) judge(f fault.Facts, lost, untold int64) {
	c.Struck = cmp.Or(f.Missed, f.Proof)
	all, last := f.Answers, f.Last
	if f.Visits != nil {
		all, last = f.Visits, f.Visits
	}
	e := audit.Evidence{
		Sums: c.Audited, Demand: audit.Demand(buyers.Answers(f.Answers)), MaxOverlap: rush.Overlap(all), Lost: lost, Untold: untold,
		Progress: rush.ProgressOf(last, f.Last, audit.Usual(buyers.Answers(f.Answers)), cmp.Or(f.Kept, f.Times.Lease), f.Times.Wait, f.Starved),
	}
	e.Count(buyers.Answers(f.Last))
	c.Verdict, c.Reason = f.Orders.JudgeRepeats(audit.Judge(e))
	c.Lost = e.Lost
	switch {
	case !c.Verdict.IsBreak() && f.Missed != "": // a violation counts even if the fault did not take effect
		c.Verdict, c.Reason = verdict.Inconclusive, f.Missed
	case f.Stalled != "" && (c.Verdict == verdict.Stalled || !c.Verdict.IsBreak() && e.Sold+e.SoldOut == 0):
		c.Verdict, c.Reason, c.goesOn = verdict.Stalled, f.Stalled+", and none was served after the repair", true
	case !c.Verdict.IsBreak() && f.Stalled != "":
		c.Verdict, c.Reason = verdict.Stalled, f.Stalled
	}
}

// Judged implements verdict.Play.
func (c *Cell) Judged() (promise, got verdict.Verdict) {
	if c.goesOn {
		return "", c.Verdict
	}
	return c.Promise, c.Verdict
}

// Disturbed implements verdict.Play.
func (c *Cell) Disturbed() string {
	if c.Verdict != verdict.Inconclusive {
		return ""
	}
	return c.disturbance
}

// IsTimed implements verdict.Play.
func (c *Cell) IsTimed() bool {
	return (c.Verdict == verdict.Stalled || c.Verdict == verdict.Unlocked) && !c.isCertain
}

// Doubt implements verdict.Play.
func (c *Cell) Doubt(reason string) {
	c.Verdict, c.Reason = verdict.Inconclusive, reason+c.Reason
	c.Evidence = c.evidence()
	c.Settle()
}

// Played implements verdict.Play.
func (c *Cell) Played(times int, because string) {
	c.Evidence += fmt.Sprintf("; played %d times, because %s", times, because)
}

func (c *Cell) evidence() string {
	text := c.Reason
	if o := c.TwoHolders; o != nil {
		known := ""
		if c.Verdict == verdict.Holds {
			known = ", which is known of this lock here, and the late one was kept from writing"
		}
		text += fmt.Sprintf("; two holders%s: %s from %.0f to %.0f ms and %s from %.0f to %.0f ms",
			known, o.First.Purchaser, o.First.FromMS, o.First.ToMS, o.Second.Purchaser, o.Second.FromMS, o.Second.ToMS)
	}
	if c.Struck != "" && c.Struck != c.Reason {
		text += "; " + c.Struck
	}
	if live := liveness(c); live != "" {
		text += "; " + live
	}
	switch {
	case c.Linearizable == linear.No && c.Verdict != verdict.Nonlinearizable:
		text += "; not linearizable: " + linear.NoOrder
	case c.Linearizable == linear.Unknown:
		text += fmt.Sprintf("; whether it is linearizable was not known after %s", linear.Timeout)
	}
	return text
}

// Line describes the cell in one line, for the progress output of a run.
func (c Cell) Line() string {
	text := fmt.Sprintf("%-15s %s under %s, %.1f s", presented{&c}.field().Terminal(marks(false)), c.Strategy, c.Fault, float64(c.DurationMS)/1000)
	if !c.OK {
		text += fmt.Sprintf("; promised %s: %s", orNothing(c.Promise), c.Reason)
	}
	return text
}
