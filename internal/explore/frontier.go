package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// A branch is a choice that was not made yet.
type branch struct {
	at     *node
	choice *schedule.Choice
	tries  int // in which the server took another course, see pair.go
	voids  int // runs of it that were void, see void.go

	after *node // of a move in a pause: the node where the same move follows the pause, see pause.go
	seen  bool  // the pause came in at least one run
}

// frontier is what is to be explored, by what it costs. What costs least goes
// first, so all schedules of one preemption come before any of two (Musuvathi
// and Qadeer, PLDI 2007); of the same cost the youngest goes first, which is
// depth first.
type frontier struct {
	limit  int // no branch costs more; negative: no limit
	byCost [][]branch
	cut    bool // one did
}

func (f *frontier) push(cost int, b branch) {
	if f.limit >= 0 && cost > f.limit {
		f.cut = true
		return
	}
	for len(f.byCost) <= cost {
		f.byCost = append(f.byCost, nil)
	}
	f.byCost[cost] = append(f.byCost[cost], b)
}

// pop returns the next branch and what it costs; false when there is none.
func (f *frontier) pop() (b branch, cost int, ok bool) {
	for cost, branches := range f.byCost {
		if n := len(branches); n > 0 {
			b, branches[n-1] = branches[n-1], branch{}
			f.byCost[cost] = branches[:n-1]
			return b, cost, true
		}
	}
	return b, 0, false
}

// A tree is every schedule on its own: where each is run to its end, and where a server
// decides what comes of a step.
type tree struct {
	*search
	frontier frontier
	begun    bool
}

// next is the branch that costs least.
func (t *tree) next() (cost int, _ trip, more bool) {
	var b branch
	if more = !t.begun; more {
		t.begun = true
	} else if b, cost, more = t.frontier.pop(); !more {
		return 0, nil, false
	}
	return cost, &walk{tree: t, branch: b, cost: cost, path: b.at.path()}, true
}

// whole is plan.whole.
func (t *tree) whole() bool { return !t.frontier.cut }

// done is trip.done. What the run has found out counts from now on.
func (w *walk) done(schedule.Ended) {
	for _, n := range w.kids {
		n.parent.kids = append(n.parent.kids, n)
	}
	for _, f := range w.found {
		w.frontier.push(f.cost, f.branch)
	}
	if w.strayed {
		w.again(w.branch, w.cost)
	}
}
