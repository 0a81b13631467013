package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// With sleep sets alone, the search runs a branch at every point where another buyer could have continued. It may
// notice only at the end of a run that the run showed nothing new. In a program with hundreds of commands, that would
// take nearly all the time. So the search follows races (Flanagan and Godefroid, "Dynamic Partial-Order Reduction for
// Model Checking Software", POPL 2005). A race is a pair of steps that do not commute, and whose order no other step
// forces. For each race, the search adds a branch that leads to the second step without the first. Of the steps in
// between, the branch begins with the earliest that does not depend on the first. Another beginning could be a sleeping
// choice, which other runs cover (Abdulla et al., "Optimal Dynamic Partial Order Reduction", POPL 2014).
//
// For each step, Flanagan and Godefroid consider only the last earlier step that races with it. The function races
// considers all of them. It also considers the commands that still wait at the gates at the end. Both only add
// branches.

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
	steps = append(steps, w.now.choices...) // at the end of a run, only sleeping commands are left
	pasts := make([]past, executed)
	for j, step := range steps {
		at := min(j, executed)
		run := append(steps[:at:at], step)
		known := past{}
		if before := cause(path, run); before >= 0 {
			known = pasts[before]
		}
		all := slices.Clone(known)
		for i := at - 1; i >= 0; i-- {
			if w.commutes(path[i], path[at], steps[i], step) {
				continue
			}
			if step.Command() && !known.has(i) {
				w.race(path[i], firstFree(run, pasts, i))
			}
			if !all.has(i) {
				all = all.union(pasts[i])
			}
		}
		if j < executed {
			pasts[j] = all.union(past{}.add(j))
		}
	}
}

// cause returns the index of the step that had to happen before the last of the steps came to its gate; -1: none.
// Normally this is the same buyer's previous step. With AnyOrder, the buyer may have several commands in flight, and
// any of them may be the cause. Then cause returns the index of the buyer's last step that was its only choice.
func cause(path []*node, steps []*schedule.Choice) int {
	i, step := len(steps)-2, steps[len(steps)-1]
	for i >= 0 && (steps[i].Buyer != step.Buyer || step.AnyOrder && path[i].several(step.Buyer)) {
		i--
	}
	return i
}

// several reports whether a buyer may have several commands under way at node n.
func (n *node) several(buyer int) bool {
	commands := 0
	for _, c := range n.choices {
		if c.Buyer == buyer {
			commands++
		}
	}
	return n.mixed || commands > 1
}

// firstFree returns the first step after step i that does not depend on step i, or else the last step. If an equal step
// comes earlier, that may be another command, so firstFree returns nil.
func firstFree(steps []*schedule.Choice, pasts []past, i int) *schedule.Choice {
	k := i + 1
	for k < len(steps)-1 && pasts[k].has(i) {
		k++
	}
	if slices.Contains(steps[i:k], steps[k]) {
		return nil
	}
	return steps[k]
}

// commutes reports whether the steps a and b of a run commute, which were taken at the nodes `one` and `other`.
func (w *walk) commutes(one, other *node, a, b *schedule.Choice) bool {
	return !one.mixed && !other.mixed && independent(a, b)
}

// race adds the branches at node n that begin with the given step, except those that n already has.
func (w *walk) race(n *node, first *schedule.Choice) {
	for _, c := range n.beginning(first) {
		if !slices.Contains(n.taken, c) {
			n.taken = append(n.taken, c)
			w.frontier.push(n.cost+n.price(n.last, c), branch{at: n, choice: c})
		}
	}
}

// beginning returns the choices of n that must become branches if the given choice does. These are that choice, the
// other choices of its buyer that do not commute with it, and the events. If n does not offer the given choice, all
// choices must. Sleeping choices, which other branches cover, are left out.
func (n *node) beginning(first *schedule.Choice) []*schedule.Choice {
	if !slices.Contains(n.choices, first) {
		return n.awake()
	}
	return slices.DeleteFunc(n.awake(), func(c *schedule.Choice) bool {
		return c.Command() && c != first && (c.Buyer != first.Buyer || !n.mixed && independent(c, first))
	})
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
