package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// With sleep sets alone, the search runs a branch at every point at which another buyer could have continued,
// and notices only at the end of the run that it showed nothing new. In a program with hundreds of commands,
// these runs take all the time. So for such a program the search follows races (Flanagan and Godefroid,
// "Dynamic Partial-Order Reduction for Model Checking Software", POPL 2005). A race is a pair of steps of two
// buyers that do not commute, where nothing else forces their order. For each race, a branch lets the second
// buyer continue before the first step.
//
// Flanagan and Godefroid look only at the last such step before each later one. races looks at all of them,
// and at the commands that a run has left at the gates, which can only add branches.

// races adds the branches that the races of a run ask for.
func (w *walk) races() {
	if w.now == nil || !w.now.races {
		return
	}
	path := w.now.path()
	var steps []*schedule.Choice
	for _, n := range path[1:] {
		steps = append(steps, n.by)
	}
	executed := len(steps)
	steps = append(steps, w.now.choices...) // only sleeping commands, or none
	pasts := make([]past, executed)
	last := map[int]int{} // the last step of each buyer
	for j, step := range steps {
		at := min(j, executed)
		previous, has := last[step.Buyer]
		known := past{}
		if has {
			known = slices.Clone(pasts[previous])
		}
		all := slices.Clone(known)
		for i := at - 1; i >= 0; i-- {
			if w.commutes(path[i], path[at], steps[i], step) {
				continue
			}
			if step.Command() && steps[i].Buyer != step.Buyer && !known.has(i) {
				w.race(path[i], step.Buyer)
			}
			if !all.has(i) {
				all = all.with(pasts[i])
			}
		}
		if j < executed {
			pasts[j] = all.with(past{}.and(j))
			last[step.Buyer] = j
		}
	}
}

// commutes reports whether two steps of a run, taken at these nodes, can change places.
func (w *walk) commutes(one, other *node, a, b *schedule.Choice) bool {
	return !one.mixed && !other.mixed && independent(a, b)
}

// race lets a buyer continue at a node, unless one of its branches does. If the buyer cannot continue
// there, all others that can get a branch.
func (w *walk) race(n *node, buyer int) {
	theirs := func(c *schedule.Choice) bool { return c.Command() && c.Buyer == buyer }
	wanted := theirs
	if !slices.ContainsFunc(n.choices, theirs) {
		wanted = (*schedule.Choice).Command
	}
	for _, c := range n.awake() {
		if wanted(c) && !slices.Contains(n.taken, c) {
			n.taken = append(n.taken, c)
			w.frontier.push(n.cost+n.price(n.last, c), branch{at: n, choice: c})
		}
	}
}

// A past is a set of steps of a run: those that had to happen before one of them.
type past []uint64

func (p past) has(step int) bool { return step/64 < len(p) && p[step/64]&(1<<(step%64)) != 0 }

// and returns the set with one more step.
func (p past) and(step int) past {
	for len(p) <= step/64 {
		p = append(p, 0)
	}
	p[step/64] |= 1 << (step % 64)
	return p
}

// with returns the union, in p's memory if it suffices.
func (p past) with(other past) past {
	for len(p) < len(other) {
		p = append(p, 0)
	}
	for i, bits := range other {
		p[i] |= bits
	}
	return p
}
