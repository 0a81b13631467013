package verify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/rush"
	"github.com/oversell/oversell/internal/verdict"
)

// A Cell is one strategy under one fault.
type Cell struct {
	Strategy   string            `json:"strategy"`
	Fault      promise.Condition `json:"fault"`
	Promise    verdict.Verdict   `json:"promise"`
	Verdict    verdict.Verdict   `json:"verdict"`
	OK         bool              `json:"ok"`
	Evidence   string            `json:"evidence"`
	Replay     string            `json:"replay"`
	DurationMS int64             `json:"duration_ms"`

	Acknowledged int64                   `json:"acknowledged"`         // sales that buyers were told of under the fault and after it
	Lost         int64                   `json:"lost"`                 // those of them that have no record
	Verdicts     map[verdict.Verdict]int `json:"verdicts,omitempty"`   // how often each was seen, where the cell was played more than once
	NoPromise    string                  `json:"no_promise,omitempty"` // why there is none
	BoundMS      int64                   `json:"next_sale_bound_ms"`   // what next_sale_ms should not be above; 0 where nothing was struck

	Reason     string       `json:"reason"`                // of the verdict, in one sentence
	Struck     string       `json:"struck"`                // how it is known that the fault struck
	Books      audit.Report `json:"books"`                 // when all was over
	NextSaleMS *int64       `json:"next_sale_ms"`          // from the fault to the next sale to somebody else; null when there was none
	TwoHolders *Overlap     `json:"two_holders,omitempty"` // the first of them
	Timeline   []Holding    `json:"timeline,omitempty"`    // up to some moments after the fault
	StruckMS   *float64     `json:"struck_ms,omitempty"`   // when the fault struck, on the timeline's clock
	History    string       `json:"history,omitempty"`     // the file
	Witness    *Witness     `json:"witness,omitempty"`     // of an exploration that found a break

	Linearizable Linearizable `json:"linearizable,omitempty"`
	Picture      string       `json:"picture,omitempty"` // the file that shows why not
}

// A Holding is the time in which a buyer believed to hold the lock, in
// milliseconds since the first event of the cell.
type Holding struct {
	Purchaser string  `json:"purchaser"`
	Token     string  `json:"token,omitempty"`
	FromMS    float64 `json:"from_ms"`
	ToMS      float64 `json:"to_ms"`
	Ended     string  `json:"ended"` // released, return, killed, or never
}

// An Overlap is two holders at once.
type Overlap struct {
	First  Holding `json:"first"`
	Second Holding `json:"second"`
}

// RushConfig is the crowd of a rush: that of the tutorial, 200 buyers for 100
// units.
func RushConfig(urls []string, shelf rush.Target, auditor rush.Auditor, strategy string, wait time.Duration) rush.Config {
	return rush.Config{
		BaseURLs: urls, Shelf: shelf, Auditor: auditor, Strategy: strategy, Product: "verify-" + strategy,
		Stock: 100, Buyers: 200, Timeout: wait + 30*time.Second, Progress: func(int) {},
	}
}

// RushCell is the cell of a rush that was run elsewhere.
func RushCell(strategy string, f promise.Condition, promised verdict.Verdict, engine string, r rush.Result, processes int) Cell {
	c := Cell{
		Strategy: strategy, Fault: f, Promise: promised, DurationMS: int64(r.DurationMS),
		Replay: fmt.Sprintf("shop verify --engine %s --strategy %s --fault %s", engine, strategy, f),
	}
	c.rushed(r, processes)
	c.Evidence = c.evidence()
	c.settle()
	return c
}

// settle compares the verdict with the promise. Books that agree do not make up
// for answers that no order of the buys explains.
func (c *Cell) settle() {
	c.OK = c.Verdict != verdict.Inconclusive && (c.Promise == "" || c.Promise.Keeps(c.Verdict))
	if c.Verdict == verdict.Holds && c.Linearizable == LinearNo {
		c.OK = false
	}
}

// rushed takes a rush's own verdict. processes is 0 at a target, which does not
// say.
func (c *Cell) rushed(r rush.Result, processes int) {
	c.Verdict, c.Reason = r.Verdict, r.Reason
	at := ""
	switch {
	case processes == 1:
		at = " at 1 process"
	case processes > 1:
		at = fmt.Sprintf(" at %d processes", processes)
	}
	c.Struck = fmt.Sprintf("%d buyers at once%s, at most %d inside", r.Sold+r.SoldOut+r.Busy+r.LockLost+r.Unknown+r.Failed, at, r.MaxOverlap)
	c.Books = r.Audited
}

// judge holds the answers against the books; lost and untold are what came of
// holding them against the records. What happened under the fault may have gone
// wrong for a buyer; what its buyers were told must be true, and those who came
// when all was mended must be served.
func (c *Cell) judge(f fault.Facts, lost, untold int64) {
	c.Struck = cmp.Or(f.Missed, f.Proof)
	e := audit.Evidence{
		Report: c.Books, Demand: int64(len(f.Answers)), MaxOverlap: audit.Overlap(rush.Answers(f.Answers)), Lost: lost, Untold: untold,
	}
	e.Count(rush.Answers(f.Last))
	c.Verdict, c.Reason = audit.Judge(e)
	c.Lost = e.Lost
	sound := c.Verdict == verdict.Holds || c.Verdict == verdict.Inconclusive
	switch {
	case sound && f.Missed != "": // a break that was seen is a break, struck or not
		c.Verdict, c.Reason = verdict.Inconclusive, f.Missed
	case sound && f.Stalled != "":
		c.Verdict, c.Reason = verdict.Stalled, f.Stalled
	}
}

// look reads the history for what the books do not show: who held at once, and
// when somebody else could buy again.
func (c *Cell) look(events []history.Event) {
	holdings, start, struck := timeline(events)
	for i, second := range holdings {
		for _, first := range holdings[:i] {
			if c.TwoHolders == nil && second.FromMS < first.ToMS && first.FromMS < second.ToMS && first.Purchaser != second.Purchaser {
				c.TwoHolders = &Overlap{first, second}
			}
		}
	}
	c.Timeline = excerpt(holdings, c.TwoHolders)
	if struck.IsZero() {
		c.Evidence = c.evidence()
		return
	}
	at := float64(struck.Sub(start).Microseconds()) / 1000
	c.StruckMS = &at
	for _, e := range events {
		if e.Kind == history.Answered && e.Outcome == string(purchase.Sold) {
			c.Acknowledged++
		}
	}
	for _, e := range events {
		if e.Kind == history.Answered && e.Outcome == string(purchase.Sold) && e.Purchaser != "holder" && e.At.After(struck) {
			ms := e.At.Sub(struck).Milliseconds()
			c.NextSaleMS = &ms
			break
		}
	}
	c.Evidence = c.evidence()
}

// excerpt is what a picture has room for: the first holdings, or those up to the
// second of two at once.
func excerpt(holdings []Holding, two *Overlap) []Holding {
	const room = 12
	last := min(room, len(holdings))
	if two != nil {
		last = max(last, 1+slices.Index(holdings, two.Second))
	}
	shown := holdings[max(0, last-room):last]
	if two != nil && !slices.Contains(shown, two.First) {
		shown = append([]Holding{two.First}, shown[1:]...)
	}
	return shown
}

// evidence is the cell in a few sentences.
func (c *Cell) evidence() string {
	text := c.Reason
	if o := c.TwoHolders; o != nil {
		text += fmt.Sprintf("; two holders: %s from %.0f to %.0f ms and %s from %.0f to %.0f ms",
			o.First.Purchaser, o.First.FromMS, o.First.ToMS, o.Second.Purchaser, o.Second.FromMS, o.Second.ToMS)
	}
	if c.Struck != "" && c.Struck != c.Reason {
		text += "; " + c.Struck
	}
	if live := c.liveness(); live != "" {
		text += "; " + live
	}
	switch c.Linearizable {
	case LinearNo:
		text += "; not linearizable: no order of the buys explains what the buyers were told"
	case LinearUnknown:
		text += fmt.Sprintf("; whether it is linearizable was not known after %s", linearPatience)
	}
	return text
}

// timeline is who believed to hold when, and the times of the first event and of
// the first strike.
// Whoever did not release held until its buy returned, or until its buyer's
// connection broke where the shop never told of either: it was killed. A shop whose
// buyer has hung up goes on, and tells later.
func timeline(events []history.Event) (holdings []Holding, start, struck time.Time) {
	if len(events) == 0 {
		return nil, start, struck
	}
	events = slices.Clone(events) // two processes and a harness: sorted by their one clock
	slices.SortStableFunc(events, func(a, b history.Event) int { return a.At.Compare(b.At) })
	start = events[0].At
	ms := func(at time.Time) float64 { return float64(at.Sub(start).Microseconds()) / 1000 }
	open := map[string]int{}
	for _, e := range events {
		switch e.Kind {
		case history.Struck:
			if struck.IsZero() {
				struck = e.At
			}
		case history.Acquired:
			open[e.Purchaser] = len(holdings)
			holdings = append(holdings, Holding{Purchaser: e.Purchaser, Token: e.Token, FromMS: ms(e.At), ToMS: ms(events[len(events)-1].At), Ended: "never"})
		case history.Released, history.Return, history.Answered:
			i, holds := open[e.Purchaser]
			if !holds {
				continue
			}
			holdings[i].ToMS, holdings[i].Ended = ms(e.At), string(e.Kind)
			if e.Kind == history.Answered {
				holdings[i].Ended = "killed"
				continue
			}
			delete(open, e.Purchaser)
		}
	}
	return holdings, start, struck
}
