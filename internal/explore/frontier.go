package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A branch is a choice that was not made yet.
type branch struct {
	at     *node
	choice *schedule.Choice
	tries  int // runs in which the server took another course, see pair.go
	voids  int // runs that were void, see void.go

	after *node // for a move in a pause: the node where the same move follows the pause, see pause.go
	seen  bool  // the pause came in at least one run
}

// frontier holds the branches to explore, by their cost. The cheapest goes first, so all schedules with one
// preemption come before any with two (Musuvathi and Qadeer, PLDI 2007). Among branches of one cost, some go
// first: those that preempt a buyer right after its snapshot, or before a change that a rule judges, since the
// buyer may rely on what it has read. Then the youngest goes first, which is depth first.
type frontier struct {
	limit  int // maximum cost of a branch; negative: no limit
	byCost []level
	cut    bool // a branch exceeded the limit
}

// A level has the branches of one cost. judged are those before a change that a rule judges.
type level struct{ judged, others []branch }

func (f *frontier) push(cost int, b branch) {
	if f.limit >= 0 && cost > f.limit {
		f.cut = true
		return
	}
	for len(f.byCost) <= cost {
		f.byCost = append(f.byCost, level{})
	}
	l := &f.byCost[cost]
	if b.judged() {
		l.judged = append(l.judged, b)
	} else {
		l.others = append(l.others, b)
	}
}

// judged reports whether the branch preempts a buyer before a change that a rule of the program judges.
// The first run of a search has no node.
func (b branch) judged() bool {
	return b.at != nil && slices.ContainsFunc(b.at.choices, func(c *schedule.Choice) bool { return c.Judged && c.Buyer == b.at.last && b.choice.Buyer != c.Buyer })
}

// pop returns the next branch and its cost, or false if there is none.
func (f *frontier) pop() (b branch, cost int, ok bool) {
	for cost := range f.byCost {
		for _, branches := range []*[]branch{&f.byCost[cost].judged, &f.byCost[cost].others} {
			if n := len(*branches); n > 0 {
				b, (*branches)[n-1] = (*branches)[n-1], branch{}
				*branches = (*branches)[:n-1]
				return b, cost, true
			}
		}
	}
	return b, 0, false
}

// A tree explores every schedule on its own. It is used if each schedule is run to its end, or if a
// server decides the result of a step.
type tree struct {
	*search
	frontier frontier
	begun    bool
}

// next returns the cheapest branch.
func (t *tree) next() (cost int, _ trip, more bool) {
	var b branch
	if more = !t.begun; more {
		t.begun = true
	} else if b, cost, more = t.frontier.pop(); !more {
		return 0, nil, false
	}
	return cost, &walk{tree: t, branch: b, cost: cost, path: b.at.path()}, true
}

// whole implements plan.
func (t *tree) whole() bool { return !t.frontier.cut }

// done implements trip. From now on the findings of the run count.
func (w *walk) done(schedule.Ended) {
	for _, n := range w.kids {
		n.parent.kids = append(n.parent.kids, n)
	}
	for _, f := range w.found {
		w.frontier.push(f.cost, f.branch)
	}
	w.races()
	if w.strayed {
		w.again(w.branch, w.cost)
	}
}
