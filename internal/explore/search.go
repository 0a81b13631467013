package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/verdict"
)

// maxSteps ends a schedule that goes round in circles.
const maxSteps = 400

// A Result is what a search found.
type Result struct {
	Explored   int  // complete schedules
	Complete   bool // there are no others, within Reduced or the bound
	Reduced    bool // one of each class only
	Cut        int  // schedules given up at maxSteps: no proof
	Violations int
	Verdicts   map[verdict.Verdict]int
	Seconds    float64
	First      float64  // seconds until the first violation was seen
	Witness    *Witness // of a violation; nil when there is none

	Foreign        int      // schedules in which a buyer freed another's lock, harm done or not
	ForeignWitness *Witness // of those
}

// node is one point of the schedule under way.
type node struct {
	actions []action // only their names are used again: the ops are of a run that has ended
	chosen  int
	sleep   []action // explored before, and still the same: need not begin here
	done    []action // explored here
	last    int      // buyer of the step before
	switchs int      // cost so far
}

// Search explores depth first until all schedules were run, the budget is
// spent, or ctx ends; then the result is what was explored so far, and in the
// last case the error is the context's cause.
func (x *Explorer) Search(ctx context.Context) (Result, error) {
	result := Result{Verdicts: map[verdict.Verdict]int{}, Reduced: x.config.Reduce}
	begun := time.Now()
	var path []*node
	var best, foreign *candidate
	finish := func(err error) (Result, error) {
		result.Seconds = time.Since(begun).Seconds()
		if errors.Is(err, ErrHarness) {
			return result, err
		}
		ctx := context.WithoutCancel(ctx)
		if best != nil {
			var failed error
			result.Witness, failed = x.follow(ctx, best.tokens)
			err = errors.Join(err, failed)
		}
		if foreign != nil {
			var failed error
			result.ForeignWitness, failed = x.follow(ctx, foreign.tokens)
			err = errors.Join(err, failed)
		}
		return result, err
	}
	for {
		ended, err := x.once(ctx, func(r *run, depth int, actions []action) (int, error) {
			if depth < len(path) {
				i, err := path[depth].again(actions)
				if err != nil {
					err = fmt.Errorf("%w; %s", err, r.state())
				}
				return i, err
			}
			n, ok := x.newNode(path, r, actions)
			if !ok {
				return -1, nil
			}
			path = append(path, n)
			return n.chosen, nil
		}, false)
		switch {
		case ctx.Err() != nil:
			return finish(context.Cause(ctx))
		case err != nil:
			return finish(fmt.Errorf("%w; schedule %s", err, tokens(path)))
		case ended.pruned:
		case ended.cut:
			result.Cut++
		default:
			result.Explored++
			result.Verdicts[ended.verdict]++
			if ended.verdict != verdict.Holds {
				if result.Violations++; result.Violations == 1 {
					result.First = time.Since(begun).Seconds()
				}
				best = best.better(ended)
			}
			if ended.foreign {
				result.Foreign++
				foreign = foreign.better(ended)
			}
		}
		if x.config.Progress != nil {
			x.config.Progress(result.Explored, result.Violations)
		}
		if x.config.First && result.Violations > 0 {
			return finish(nil)
		}
		if path = x.next(path); len(path) == 0 {
			result.Complete = result.Cut == 0
			return finish(nil)
		}
		if x.config.Budget > 0 && time.Since(begun) > x.config.Budget {
			return finish(nil)
		}
	}
}

// again finds the choice of this node among the actions of another run.
func (n *node) again(actions []action) (int, error) {
	if len(actions) == len(n.actions) {
		same := true
		for i := range actions {
			same = same && actions[i].token == n.actions[i].token && actions[i].name == n.actions[i].name
		}
		if same {
			return n.chosen, nil
		}
	}
	return 0, fmt.Errorf("%w: the same schedule did not run the same way again: %s, and before %s", ErrHarness, list(actions), list(n.actions))
}

func list(actions []action) string {
	var names []string
	for _, a := range actions {
		names = append(names, a.token+" "+a.name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// newNode is the next point of the schedule; false when nothing new can come of
// it. It goes on with the buyer of the step before, where that is possible.
func (x *Explorer) newNode(path []*node, r *run, actions []action) (*node, bool) {
	n := &node{actions: actions}
	if len(path) > 0 {
		before := path[len(path)-1]
		a := before.actions[before.chosen]
		n.last, n.switchs = before.last, before.switchs
		if a.event == "" {
			n.last = a.buyer
		}
		n.switchs += before.cost(before.chosen)
		if x.config.Reduce {
			for _, asleep := range append(before.sleep[:len(before.sleep):len(before.sleep)], before.done...) {
				if independent(asleep, a) {
					n.sleep = append(n.sleep, asleep)
				}
			}
		}
	}
	n.chosen = -1
	for i, a := range actions {
		if a.event == "" && a.buyer == n.last && x.allowed(n, i) {
			n.chosen = i
			return n, true
		}
	}
	return n, x.choose(n, -1)
}

// choose takes the first action that is allowed and was not explored here.
func (x *Explorer) choose(n *node, _ int) bool {
	for i, a := range n.actions {
		if x.allowed(n, i) && !has(n.done, a) {
			n.chosen = i
			return true
		}
	}
	return false
}

func (x *Explorer) allowed(n *node, i int) bool {
	if has(n.sleep, n.actions[i]) {
		return false
	}
	return x.config.Bound < 0 || n.switchs+n.cost(i) <= x.config.Bound
}

// cost is what an action takes from the bound: 1 for a preemption, where the
// buyer of the step before could have gone on; 1 for a buyer's command that
// overtakes another of its own, at a Redlock node that comes first.
func (n *node) cost(i int) (cost int) {
	a := n.actions[i]
	if a.event != "" {
		return 0
	}
	for j, other := range n.actions {
		if other.event == "" && other.buyer == n.last && a.buyer != n.last {
			cost = 1
		}
		if other.event == "" && other.buyer == a.buyer && j < i {
			return cost + 1
		}
	}
	return cost
}

func has(actions []action, a action) bool {
	for _, other := range actions {
		if other.token == a.token {
			return true
		}
	}
	return false
}

// independent: the two steps may change places, and no server, nor any buyer,
// can tell.
func independent(a, b action) bool {
	switch {
	case a.event == Crash || b.event == Crash:
		return false
	case a.buyer == b.buyer && (a.event == Renew || b.event == Renew || a.aside || b.aside):
		return false // a renewal may end the buyer's section, and the buyer the renewals
	case a.event == "" && b.event == "" && a.buyer == b.buyer:
		return a.touches != b.touches // both on their way at once: two Redlock nodes
	case a.event == "" && b.event == Renew, a.event == Renew && b.event == "":
		return true // a timer fires in the buyer's process alone
	case a.event != "" && b.event != "":
		return false
	case a.effect == local || b.effect == local:
		return true
	case a.touches == "" || b.touches == "":
		return a.touches == "sql" || b.touches == "sql"
	case a.touches != b.touches:
		return true
	}
	return a.effect == reads && b.effect == reads
}

// next turns the path to the next schedule in depth-first order.
func (x *Explorer) next(path []*node) []*node {
	for len(path) > 0 {
		n := path[len(path)-1]
		n.done = append(n.done, n.actions[n.chosen])
		if x.choose(n, n.chosen) {
			return path
		}
		path = path[:len(path)-1]
	}
	return nil
}

func tokens(path []*node) string {
	var all []string
	for _, n := range path {
		all = append(all, n.actions[n.chosen].token)
	}
	return strings.Join(all, ".")
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
}

// once runs one schedule from the restored state. choose picks an action, or a
// negative number where the schedule need not be gone on with.
func (x *Explorer) once(ctx context.Context, choose func(r *run, depth int, actions []action) (int, error), observe bool) (e ended, err error) {
	x.clock.Store(0)
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
func (r *run) play(ctx context.Context, choose func(r *run, depth int, actions []action) (int, error), watch *watcher) (e ended, deadEnd bool, err error) {
	if err := r.settle(ctx); err != nil {
		return e, false, err
	}
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
		i, err := choose(r, depth, actions)
		if err != nil {
			return e, false, err
		}
		if i < 0 {
			e.pruned = true
			return e, false, nil
		}
		a := actions[i]
		if err := r.do(ctx, a); err != nil {
			return e, false, fmt.Errorf("%s %s: %w", a.token, a.name, err)
		}
		e.tokens = append(e.tokens, a.token)
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
