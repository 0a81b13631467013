package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/verdict"
)

// maxSteps ends a schedule that goes round in circles.
const maxSteps = 400

// A Result is what a search found.
type Result struct {
	Explored int  // complete schedules
	Complete bool // there are no others, within Reduced or the bound

	Within         int // all schedules of so many preemptions were explored; -1: not even those of none
	ExploredWithin int // how many those are

	Reduced    bool           // one of each class only
	Cut        int            // schedules given up at maxSteps: no proof
	Overlapped int            // of those explored, the ones with commands let go together
	Missed     int            // branches below an overlapped step that did not come up again
	Courses    map[string]int // what overlapped steps came to
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
	choices  map[choice]*choice // one of each
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
		x: x, choices: map[choice]*choice{}, frontier: frontier{limit: x.config.Bound}, begun: time.Now(),
		result: Result{Verdicts: map[verdict.Verdict]int{}, Courses: map[string]int{}, Reduced: x.config.Reduce, Within: -1},
	}
	err := s.all(ctx)
	s.result.Seconds = time.Since(s.begun).Seconds()
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
		if result.Explored > 0 && c.Budget > 0 && time.Since(s.begun) > c.Budget {
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
	e, err := s.x.once(ctx, w.choose, s.x.config.Overlap)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w; schedule %s", err, strings.Join(e.tokens, "."))
	}
	if w.strayed {
		s.again(b, cost)
	}
	s.note(e)
	return nil
}

// note counts a schedule.
func (s *search) note(e ended) {
	r := &s.result
	if e.pruned {
		return
	}
	if e.cut {
		r.Cut++
		return
	}
	r.Explored++
	r.Verdicts[e.verdict]++
	if e.overlapped {
		r.Overlapped++
	}
	if e.verdict != verdict.Holds {
		if r.Violations++; r.Violations == 1 {
			r.First = time.Since(s.begun).Seconds()
		}
		s.best = s.best.better(e)
	}
	if e.foreign {
		r.Foreign++
		s.foreign = s.foreign.better(e)
	}
}

// A walk makes the choices of one branch: those of its path again, then the
// branch's, then the first ones that there are.
type walk struct {
	*search
	branch
	path       []*node
	now        *node // where it is
	by         *choice
	overlapped bool // an overlapped step is behind it
	strayed    bool // the server took another course than before
}

func (w *walk) choose(r *run, depth int, actions []action) (string, error) {
	n := below(w.now, w.by)
	n.seen = r.seen
	if w.by != nil && w.by.event == together {
		w.overlapped = true
		w.result.Courses[n.seen]++
	}
	n.choices = w.options(r, n.last, actions)
	switch {
	case w.strayed || depth >= len(w.path):
		w.now, w.by = n, w.open(n)
	case !n.same(w.path[depth]):
		if !w.overlapped {
			return "", fmt.Errorf("%w: the same schedule did not run the same way again: %s, and before %s; %s", ErrHarness, list(n.choices), list(w.path[depth].choices), r.state())
		}
		w.strayed = true
		if slices.ContainsFunc(w.now.kids, n.same) {
			return "", nil // what follows there is explored on its own
		}
		w.now, w.by = n, w.open(n)
	case depth == len(w.path)-1:
		w.now, w.by = w.path[depth], w.choice
	default:
		w.now, w.by = w.path[depth], w.path[depth+1].by
	}
	if w.by == nil {
		return "", nil
	}
	return w.by.token, nil
}

// same: nothing tells the two apart.
func (n *node) same(other *node) bool {
	return n.by == other.by && n.seen == other.seen && slices.Equal(n.choices, other.choices)
}

func list(choices []*choice) string {
	var names []string
	for _, c := range choices {
		names = append(names, c.token+" "+c.name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// options are the choices that actions are: those of the buyer of the step
// before go first, so that a schedule goes on with it where it can.
func (w *walk) options(r *run, last int, actions []action) []*choice {
	var first, others []*choice
	newcomer := 0 // with Alike: of those who have not begun, the one who may
	for _, a := range actions {
		c := w.one(choice{a.token, a.name, a.touches, a.event, a.buyer, a.effect, a.aside})
		if w.x.config.Alike && a.event == "" && r.buyers[a.buyer-1].steps == 0 {
			if newcomer == 0 {
				newcomer = a.buyer
			}
			if a.buyer != newcomer {
				continue
			}
		}
		if a.event == "" && a.buyer == last {
			first = append(first, c)
		} else {
			others = append(others, c)
		}
	}
	all := append(first, others...)
	if w.x.config.Overlap && !w.overlapped {
		all = append(all, w.pairs(all)...)
	}
	return all
}

// one returns the one choice that is like c.
func (s *search) one(c choice) *choice {
	known := s.choices[c]
	if known == nil {
		known = &c
		s.choices[c] = known
	}
	return known
}

// open adds a new node: its first choice is made now, the others are branches.
// It is nil where nothing new can come of any.
func (w *walk) open(n *node) (first *choice) {
	if w.overlapped {
		n.parent.kids = append(n.parent.kids, n)
	}
	if w.x.config.Reduce {
		n.inherit()
	}
	for _, c := range n.choices {
		if !slices.Contains(n.sleep, c) {
			first = c
			break
		}
	}
	for _, c := range slices.Backward(n.choices) {
		if c == first || slices.Contains(n.sleep, c) {
			continue
		}
		cost := n.cost + n.price(c)
		if w.x.config.Reduce {
			cost = 0 // plain depth first
		}
		w.frontier.push(cost, branch{at: n, choice: c})
	}
	return first
}

// ended is how one schedule ended.
type ended struct {
	verdict  verdict.Verdict
	why      string
	tokens   []string
	steps    []Step // with observe
	outcomes []Outcome
	foreign  bool // a buyer has freed another's lock
	pruned   bool // nothing new could come of it
	cut      bool // it went round in circles

	overlapped bool // commands were let go together
}

// A chooser picks an action by its token, or "" where the schedule need not be
// gone on with.
type chooser func(r *run, depth int, actions []action) (token string, err error)

// once runs one schedule from the restored state.
func (x *Explorer) once(ctx context.Context, choose chooser, observe bool) (e ended, err error) {
	x.clock.begin()
	if err := x.restore(ctx); err != nil {
		return e, err
	}
	r := x.start(ctx)
	watch := newWatcher(x, observe)
	deadEnd := false
	e, deadEnd, err = r.play(ctx, choose, watch)
	if finishErr := r.finish(context.WithoutCancel(ctx), deadEnd); finishErr != nil || err != nil {
		x.gates.current.Store(nil)
		return e, errors.Join(err, finishErr)
	}
	if e.pruned || e.cut {
		return e, nil
	}
	e.verdict, e.why, err = x.judge(ctx, r, deadEnd)
	e.foreign = r.foreign
	e.steps, e.outcomes = watch.steps, r.outcomes()
	return e, err
}

// play makes the steps. deadEnd: somebody is left that nothing can wake.
func (r *run) play(ctx context.Context, choose chooser, watch *watcher) (e ended, deadEnd bool, err error) {
	if err := r.settle(ctx); err != nil {
		return e, false, err
	}
	watch.locks(r, Step{Stock: r.x.config.Stock})
	for depth := 0; ; {
		actions, err := r.actions(ctx)
		if err != nil {
			return e, false, err
		}
		if !r.canMove(actions) {
			if r.allOver() {
				return e, false, nil
			}
			told, passed, err := r.passTime(ctx)
			if err == nil && passed {
				watch.time(told)
				err = r.settle(ctx)
			}
			if err != nil || !passed {
				return e, err == nil, err
			}
			continue
		}
		if depth == maxSteps {
			e.cut = true
			return e, false, nil
		}
		token, err := choose(r, depth, actions)
		if err != nil {
			return e, false, err
		}
		if token == "" {
			e.pruned = true
			return e, false, nil
		}
		a, ok := pick(actions, token)
		if !ok {
			return e, false, fmt.Errorf("%w: step %d of the schedule is %s, and there are %s", errMisfit, depth+1, token, known(actions))
		}
		if err := r.do(ctx, a); err != nil {
			return e, false, fmt.Errorf("%s %s: %w", a.token, a.name, err)
		}
		r.seen = r.cameTo(a)
		e.tokens = append(e.tokens, a.token)
		e.overlapped = e.overlapped || a.event == together
		if err := watch.after(ctx, r, a); err != nil {
			return e, false, err
		}
		depth++
	}
}

// canMove: there is a step of a buyer. Events alone need not happen.
func (r *run) canMove(actions []action) bool {
	for _, a := range actions {
		if a.event == "" {
			return true
		}
	}
	return false
}

// allOver: every Buy has returned, and what it left running has ended.
func (r *run) allOver() bool {
	for _, b := range r.buyers {
		if !b.over {
			return false
		}
	}
	return true
}
