package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// With sleep sets alone, the search runs a branch at every point where another buyer could have continued, and may
// notice only at the end of the run that the run shows nothing new. In a program with hundreds of commands, such runs
// would take nearly all the time. So for such a program the search follows races (Flanagan and Godefroid, "Dynamic
// Partial-Order Reduction for Model Checking Software", POPL 2005). A race is a pair of steps of two buyers that do not
// commute, and whose order no other step forces. For each race, the search adds a branch in which the second buyer
// continues before the first step.
//
// For each step, Flanagan and Godefroid consider only the last earlier step that races with it. The function races
// considers all of them, and also the commands that still wait at the gates at the end. This can only add branches.

// races adds the branches for the races of a run.
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
	steps = append(steps, w.now.choices...) // at the end of a run, these can only be sleeping commands
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
				all = all.union(pasts[i])
			}
		}
		if j < executed {
			pasts[j] = all.union(past{}.add(j))
			last[step.Buyer] = j
		}
	}
}

// commutes reports whether the steps a and b of a run, taken at the nodes one and other, commute.
func (w *walk) commutes(one, other *node, a, b *schedule.Choice) bool {
	return !one.mixed && !other.mixed && independent(a, b)
}

// race adds a branch in which the buyer continues at node n, unless there is one. If the buyer cannot continue
// there, it adds branches for all buyers that can.
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

// A past is the set of steps that had to happen before a given step of a run.
type past []uint64

func (p past) has(step int) bool { return step/64 < len(p) && p[step/64]&(1<<(step%64)) != 0 }

func (p past) add(step int) past {
	for len(p) <= step/64 {
		p = append(p, 0)
	}
	p[step/64] |= 1 << (step % 64)
	return p
}

// union returns the union. It reuses p's memory if possible.
func (p past) union(other past) past {
	for len(p) < len(other) {
		p = append(p, 0)
	}
	for i, bits := range other {
		p[i] |= bits
	}
	return p
}
