package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// node is one point of a schedule.
type node struct {
	parent  *node
	by      *schedule.Choice   // what led here; nil at the root
	seen    string             // what a concurrent pair came to
	choices []*schedule.Choice // those of the buyer of the step before go first
	sleep   []*schedule.Choice // explored before, and still the same: need not begin here
	kids    []*node            // below a concurrent pair: the ways that it went on
	last    int                // buyer of the step before
	cost    int                // so far
}

// below is the node that by leads to from n, which is nil at the root.
func below(n *node, by *schedule.Choice) *node {
	kid := &node{parent: n, by: by}
	if n == nil {
		return kid
	}
	kid.last = n.last
	if by.Moves() {
		kid.last = by.Buyer
	}
	kid.cost = n.cost + n.price(by)
	return kid
}

// path are the nodes from the root to n.
func (n *node) path() (path []*node) {
	for ; n != nil; n = n.parent {
		path = append(path, n)
	}
	slices.Reverse(path)
	return path
}

// price is what a choice takes from the bound: 1 for a preemption, where the
// buyer of the step before could have gone on; 1 for a buyer's command that
// overtakes another of its own, at a Redlock node that comes first; 1 for a
// concurrent pair.
func (n *node) price(c *schedule.Choice) int {
	switch {
	case c.Pair:
		return 1
	case c.Event != "":
		return 0
	}
	preempts, overtakes := 0, 0
	for _, before := range n.choices[:slices.Index(n.choices, c)] {
		switch {
		case before.Event != "":
		case before.Buyer == c.Buyer:
			overtakes = 1
		case before.Buyer == n.last:
			preempts = 1
		}
	}
	return preempts + overtakes
}

// A branch is a choice that was not made yet.
type branch struct {
	at     *node
	choice *schedule.Choice
	tries  int // in which the server took another course, see pair.go
}

// frontier is what is to be explored, by what it costs. What costs least goes
// first, so all schedules of one preemption come before any of two (Musuvathi
// and Qadeer, PLDI 2007); of the same cost the youngest goes first, which is
// depth first.
type frontier struct {
	limit  int // no branch costs more; negative: no limit
	byCost [][]branch
}

func (f *frontier) push(cost int, b branch) {
	if f.limit >= 0 && cost > f.limit {
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
