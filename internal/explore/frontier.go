package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A branch is a choice at a node that the search has not made yet.
type branch struct {
	at     *node
	choice *schedule.Choice
	tries  int // failed attempts: the server executed two concurrent commands on the path in another order than before
	voids  int // runs that were void: the explorer lost control

	after *node // only for a move in another buyer's pause ("1~2"): the node at which the same move comes after the pause instead
	seen  bool  // the pause occurred in at least one run
}

// frontier holds the branches to explore, by their cost: the number of preemptions. The cheapest goes first, so all
// schedules with one preemption come before any with two (Musuvathi and Qadeer, PLDI 2007). Among equals, branches with
// judged() go first. Such a branch interrupts a buyer that has taken a snapshot, or that is about to change rows that a
// rule reads. Another buyer's write then makes the interrupted buyer's reads outdated. Among the rest, the newest goes first: depth first.
type frontier struct {
	limit  int // maximum cost of a branch; negative: no limit
	byCost []level
	cut    bool // a branch exceeded the limit and was dropped
}

// A level holds the branches of one cost: those for which branch.judged returns true, and the others.
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

// judged reports whether the branch preempts a buyer before a command with schedule.Choice.Judged. The branch of the
// first run has no node.
func (b branch) judged() bool {
	return b.at != nil && slices.ContainsFunc(b.at.choices, func(c *schedule.Choice) bool { return c.Judged && c.Buyer == b.at.last && b.choice.Buyer != c.Buyer })
}

// pop removes and returns the next branch and its cost; false if there is none.
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

// A tree explores every schedule separately, without merging equal states. The search uses a tree if each schedule
// must run to its end, or if equal steps may have different results, since a server decides.
type tree struct {
	*search
	frontier frontier
	begun    bool
}

// next returns the cheapest branch.
func (t *tree) next() (cost int, _ execution, more bool) {
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

// done implements execution. It adds the branches that the run has found to the frontier.
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
