package explore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A graph merges the schedules that reach the same state. Each run follows known choices to one that was never made.
// From there it continues, even through known states, as long as it can find something new.
//
// The continuation with the fewest preemptions goes first. A preemption is a switch away from a buyer that could
// continue.
type graph struct {
	*search
	states map[schedule.State]*node
	root   *node
	before int            // the buyer of the step before the root; 0: none
	level  int            // number of preemptions of the current runs
	closed map[place]bool // places from which no choice is left to explore
}

func newGraph(s *search) *graph {
	return &graph{search: s, states: map[schedule.State]*node{}, closed: map[place]bool{}}
}

// A place is a node, the buyer of the last step, and the number of preemptions left; negative means no limit.
type place struct {
	at         *node
	last, left int
}

const anyNumber = -1

func (g *graph) start(left int) place { return place{g.root, g.before, left} }

// successor returns the place to which a choice leads from p. Its node is nil if no run has made the choice. If the
// choice needs more preemptions than are left, `payable` is false.
func (p place) successor(c *schedule.Choice) (to place, payable bool) {
	to = place{p.at.next[slices.Index(p.at.choices, c)], after(p.last, c), p.left}
	if p.left >= 0 {
		to.left -= p.at.price(p.last, c)
	}
	return to, p.left < 0 || to.left >= 0
}

// follow calls f with each place to which a permitted choice has led.
func (p place) follow(f func(c *schedule.Choice, to place)) {
	for _, c := range p.at.choices {
		if to, payable := p.successor(c); payable && to.at != nil {
			f(c, to)
		}
	}
}

// next implements plan.
func (g *graph) next() (cost int, _ execution, more bool) {
	if g.root == nil {
		return 0, &traversal{graph: g, last: g.before}, true
	}
	for ; g.x.config.Bound < 0 || g.level <= g.x.config.Bound; g.level++ {
		if g.open(g.start(g.level)) != nil {
			return g.level, &traversal{graph: g, last: g.before, left: g.level}, true
		}
		if g.open(g.start(anyNumber)) == nil {
			break
		}
	}
	return 0, nil, false
}

// whole implements plan.
func (g *graph) whole() bool { return g.open(g.start(anyNumber)) == nil }

// open returns a choice at p that no run has made, or one that leads to such a choice; nil if there is none.
func (g *graph) open(p place) *schedule.Choice {
	if g.closed[p] {
		return nil
	}
	ordered := p.at.inOrder(p.last)
	for _, c := range ordered {
		if to, payable := p.successor(c); payable && to.at == nil && (g.x.config.Shared || !p.at.infer(c)) {
			return c
		}
	}
	for _, c := range ordered {
		if to, payable := p.successor(c); payable && g.open(to) != nil {
			return c
		}
	}
	g.closed[p] = true
	return nil
}

// infer finds the node to which choice c leads from n, without a run. Assume that c commutes with the step that led to
// n. If another run made c first and then that step, both orders lead to the same state. This does not apply to a
// process that all buyers share, since the process may remember which buyer was answered first.
func (n *node) infer(c *schedule.Choice) bool {
	for _, step := range n.from {
		first, quiet := step.at.quietly(c)
		if !quiet || !independent(step.by, c) {
			continue
		}
		if _, quiet := step.at.quietly(step.by); !quiet {
			continue
		}
		if to, quiet := first.quietly(step.by); quiet {
			n.leads(c, to, false)
			return true
		}
	}
	return false
}

// quietly returns the node to which a choice has led. It returns false if no run made the choice, or if the choice
// delivers a message. The receiving buyer's other steps do not commute with a message.
func (n *node) quietly(c *schedule.Choice) (to *node, quiet bool) {
	i := slices.Index(n.choices, c)
	if i < 0 || n.next[i] == nil || n.loud[i] {
		return nil, false
	}
	return n.next[i], true
}

// leads records the node to which a choice has led. If the choice delivers a message, `loud` is true.
func (n *node) leads(c *schedule.Choice, to *node, loud bool) {
	i := slices.Index(n.choices, c)
	n.next[i], n.loud[i] = to, loud
	to.from = append(to.from, step{n, c})
}

// A traversal is one run through the graph.
type traversal struct {
	*graph
	at         *node            // the last node; nil before the root
	by         *schedule.Choice // the last choice
	last, left int
}

// choose implements schedule.Chooser.
func (w *traversal) choose(p *schedule.Point) (string, error) {
	n, err := w.arrive(p)
	if err != nil {
		return "", err
	}
	w.at, w.by = n, nil
	if p.AtEnd() {
		if n.ended != nil {
			return "", nil
		}
		return schedule.Judge, nil
	}
	here := place{n, w.last, w.left}
	if w.by = w.open(here); w.by == nil {
		return "", nil
	}
	to, _ := here.successor(w.by)
	w.last, w.left = to.last, to.left
	return w.by.Token, nil
}

// arrive returns the node to which the last choice has led: the known node, or the node with the same state, or a new
// one.
func (w *traversal) arrive(p *schedule.Point) (n *node, err error) {
	choices := w.options(p)
	n = w.root
	if w.at != nil {
		n = w.at.next[slices.Index(w.at.choices, w.by)]
	}
	if n != nil {
		return n, n.repeats(choices, schedule.ErrUnrepeated, p)
	}
	state, err := p.State()
	if err != nil {
		return nil, err
	}
	n, known := w.states[state]
	if known {
		err = n.repeats(choices, errUnlike, p)
	} else {
		n = &node{choices: choices, next: make([]*node, len(choices)), loud: make([]bool, len(choices))}
		w.states[state] = n
	}
	w.link(n, p.Told)
	return n, err
}

var errUnlike = errors.New("two schedules reached one state but have different choices there")

// repeats returns an error if a node's choices have changed.
func (n *node) repeats(now []*schedule.Choice, what error, p *schedule.Point) error {
	if slices.Equal(n.choices, now) {
		return nil
	}
	return fmt.Errorf("%w: %w: %s, and before %s; %s", ErrHarness, what, list(now), list(n.choices), p.Where())
}

// link records that the last choice has led to n.
func (w *traversal) link(n *node, loud bool) {
	if w.at == nil {
		w.root = n
		return
	}
	w.at.leads(w.by, n, loud)
}

// done implements execution.
func (w *traversal) done(e schedule.Ended) {
	switch {
	case e.Cut: // the schedule had too many steps: mark its end, so no other run goes there
		w.link(&node{}, true)
	case !e.Pruned:
		w.at.ended = &schedule.Ended{Verdict: e.Verdict, Why: e.Why, Foreign: e.Foreign, Early: e.Early}
	}
}
