package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/verdict"
)

// A Result is what a search found.
type Result struct {
	Explored int  // complete schedules
	Complete bool // there are no others, within Reduced or the bound

	Within         int // all schedules of so many preemptions were explored; -1: not even those of none
	ExploredWithin int // how many those are

	Reduced    bool           // one of each class only
	Never      []Event        // those of Config.Events for which there was nothing to strike, at any step of any schedule
	Cut        int            // schedules given up at schedule.MaxSteps: no proof
	Overlapped int            // of those explored, the ones with a concurrent pair
	Missed     int            // branches below a concurrent pair that did not come up again
	Courses    map[string]int // what concurrent pairs came to
	Violations int
	Verdicts   map[verdict.Verdict]int
	Seconds    float64
	First      float64  // seconds until the first violation was seen
	Witness    *Witness // of a violation; nil when there is none

	Foreign        int      // schedules in which a buyer freed another's lock, harm done or not
	ForeignWitness *Witness // of those
}

// A search is one run of Search.
type search struct {
	x        *Explorer
	choices  map[schedule.Choice]*schedule.Choice // one of each
	offered  map[Event]bool                       // events that could have come
	frontier frontier
	result   Result
	begun    time.Time

	best, foreign *candidate
}

// Search explores until all schedules were run, the budget is spent, or ctx
// ends; then the result is what was explored so far, and in the last case the
// error is the context's cause.
func (x *Explorer) Search(ctx context.Context) (Result, error) {
	s := &search{
		x: x, choices: map[schedule.Choice]*schedule.Choice{}, offered: map[Event]bool{}, frontier: frontier{limit: x.config.Bound}, begun: time.Now(),
		result: Result{Verdicts: map[verdict.Verdict]int{}, Courses: map[string]int{}, Reduced: x.config.Reduce, Within: -1},
	}
	err := s.all(ctx)
	s.result.Seconds = time.Since(s.begun).Seconds()
	s.result.Never = slices.DeleteFunc(slices.Clone(x.config.Events), func(e Event) bool { return s.offered[e] })
	if errors.Is(err, ErrHarness) {
		return s.result, err
	}
	ctx = context.WithoutCancel(ctx)
	var failed [2]error
	if s.result.Violations > 0 && !s.result.Complete {
		var shrunk error
		if s.best, shrunk = s.best.shrink(ctx, x); shrunk != nil {
			return s.result, errors.Join(err, shrunk)
		}
	}
	s.result.Witness, failed[0] = s.best.witness(ctx, x)
	s.result.ForeignWitness, failed[1] = s.foreign.witness(ctx, x)
	return s.result, errors.Join(err, failed[0], failed[1])
}

// all runs one branch after the other.
func (s *search) all(ctx context.Context) error {
	c, result := s.x.config, &s.result
	for b, cost, more := (branch{}), 0, true; more; b, cost, more = s.frontier.pop() {
		if cost > result.Within+1 && result.Cut == 0 && !c.Reduce && !c.Overlap {
			result.Within, result.ExploredWithin = cost-1, result.Explored
		}
		if c.Schedules > 0 && result.Explored >= c.Schedules || result.Explored > 0 && c.Budget > 0 && time.Since(s.begun) > c.Budget {
			return nil
		}
		if err := s.run(ctx, b, cost); err != nil {
			return err
		}
		if c.Progress != nil {
			c.Progress(result.Explored, result.Violations)
		}
		if c.First && result.Violations > 0 {
			return nil
		}
	}
	result.Complete = result.Cut == 0
	return nil
}

// run runs one branch, and notes how it ended.
func (s *search) run(ctx context.Context, b branch, cost int) error {
	w := &walk{search: s, branch: b, path: b.at.path()}
	e, err := s.x.runner.Run(ctx, w.choose, s.x.config.Overlap)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w; schedule %s", err, strings.Join(e.Tokens, "."))
	}
	if w.strayed {
		s.again(b, cost)
	}
	s.note(e)
	return nil
}

// note counts a schedule.
func (s *search) note(e schedule.Ended) {
	r := &s.result
	if e.Pruned {
		return
	}
	if e.Cut {
		r.Cut++
		return
	}
	r.Explored++
	r.Verdicts[e.Verdict]++
	if e.Concurrent {
		r.Overlapped++
	}
	if e.Verdict != verdict.Holds {
		if r.Violations++; r.Violations == 1 {
			r.First = time.Since(s.begun).Seconds()
		}
		s.best = s.best.better(e)
	}
	if e.Foreign {
		r.Foreign++
		s.foreign = s.foreign.better(e)
	}
}
