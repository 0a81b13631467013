package runs

import (
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
)

// A Recorder receives the events of a run: one crowd (burst of buyers) for each strategy. Its methods may be
// called by several goroutines.
type Recorder struct {
	// Strikes delivers the names of faults to inject into the current crowd.
	Strikes <-chan string

	keeper *Keeper
	run    *Run
}

// Begin reports that a strategy's crowd is about to be sent.
func (r *Recorder) Begin(strategy string) {
	r.change(func() { r.run.Now = strategy })
}

// Event records an event of a shop.
func (r *Recorder) Event(e history.Event) {
	r.keeper.hub.Publish(e)
	r.keeper.mu.Lock()
	defer r.keeper.mu.Unlock()
	if len(r.run.Events) < maxEvents {
		r.run.Events = append(r.run.Events, e)
	} else {
		r.run.LeftOut++
	}
}

// Judged records a crowd's result and freezes its lane, the picture on the page. So the restocks and test sales
// that follow do not change the lane.
func (r *Recorder) Judged(result rush.Result) {
	lane := r.keeper.hub.Freeze(r.run.Product, result.Strategy)
	r.change(func() {
		r.run.Lanes = append(r.run.Lanes, lane)
		r.put(result)
	})
}

// Ended records the strategy's final result, after the test sales.
func (r *Recorder) Ended(result rush.Result) { r.change(func() { r.put(result) }) }

// Struck records an attempt to inject a fault.
func (r *Recorder) Struck(s Strike) {
	what := s.Fault + " took effect: " + s.Proof
	if s.Missed != "" {
		what = s.Fault + " missed: " + s.Missed
	}
	r.Event(history.Event{Kind: history.Struck, At: time.Now(), Strategy: s.Strategy, Product: r.run.Product, Outcome: what})
	r.change(func() {
		another := r.run.Fault != "" || slices.ContainsFunc(r.run.Strikes, Strike.byHand)
		r.run.Strikes = append(r.run.Strikes, s)
		if s.byHand() && !another { // the command that repeats the run can inject only one fault
			asked := r.run.Request
			asked.Fault = s.Fault
			r.run.Command = r.keeper.sender.Command(asked) + " # " + s.Fault + " was injected into " + s.Strategy + " by hand"
		}
	})
}

func (r *Recorder) put(result rush.Result) {
	row := Row{
		Strategy: result.Strategy, Verdict: result.Verdict, Promise: result.Promise,
		Kept:     result.Verdict != verdict.Inconclusive && (result.Promise == "" || result.Promise.Keeps(result.Verdict)),
		Oversold: result.Oversold, Drift: result.Drift,
	}
	for i := range r.run.Rows {
		if r.run.Rows[i].Strategy == row.Strategy {
			r.run.Rows[i], r.run.Report.Results[i] = row, result
			return
		}
	}
	r.run.Rows = append(r.run.Rows, row)
	r.run.Report.Results = append(r.run.Report.Results, result)
}

func (r *Recorder) change(what func()) {
	r.keeper.mu.Lock()
	defer r.keeper.mu.Unlock()
	what()
	r.keeper.publish()
}
