package explore

import "slices"

// A choice is what is kept of an action: its op is of a run that will have
// ended. A search has one of each, so that they compare by their addresses.
type choice struct {
	token, name, touches string
	event                Event
	buyer                int
	effect               effect
	aside                bool // as op.aside
}

// moves: it is a buyer's, or two buyers', command.
func (c *choice) moves() bool { return c.event == "" || c.event == together }

// node is one point of a schedule.
type node struct {
	parent  *node
	by      *choice   // what led here; nil at the root
	seen    string    // what an overlapped step came to
	choices []*choice // those of the buyer of the step before go first
	sleep   []*choice // explored before, and still the same: need not begin here
	kids    []*node   // below an overlapped step: the ways that it went on
	last    int       // buyer of the step before
	cost    int       // so far
}

// below is the node that by leads to from n, which is nil at the root.
func below(n *node, by *choice) *node {
	kid := &node{parent: n, by: by}
	if n == nil {
		return kid
	}
	kid.last = n.last
	if by.moves() {
		kid.last = by.buyer
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
// overtakes another of its own, at a Redlock node that comes first; 1 for two
// commands let go together.
func (n *node) price(c *choice) int {
	switch {
	case c.event == together:
		return 1
	case c.event != "":
		return 0
	}
	preempts, overtakes := 0, 0
	for _, before := range n.choices[:slices.Index(n.choices, c)] {
		switch {
		case before.event != "":
		case before.buyer == c.buyer:
			overtakes = 1
		case before.buyer == n.last:
			preempts = 1
		}
	}
	return preempts + overtakes
}

// inherit puts to sleep what was or will be explored from the parent, and is
// independent of the step that led here.
func (n *node) inherit() {
	if n.parent == nil {
		return
	}
	before := n.parent.choices[:slices.Index(n.parent.choices, n.by)]
	for _, c := range slices.Concat(n.parent.sleep, before) {
		if independent(c, n.by) {
			n.sleep = append(n.sleep, c)
		}
	}
}

// independent: the two steps may change places, and no server, nor any buyer,
// can tell.
func independent(a, b *choice) bool {
	switch {
	case a.event == Crash || b.event == Crash:
		return false
	case a.buyer == b.buyer && (a.event == Renew || b.event == Renew || a.aside || b.aside):
		return false // a renewal may end the buyer's section, and the buyer the renewals
	case a.buyer == b.buyer && (a.event == Timeout || b.event == Timeout):
		return false // what it sends next is for its section's answer to the error
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

// A branch is a choice that was not made yet.
type branch struct {
	at     *node
	choice *choice
	tries  int // in which the server took another course, see overlap.go
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
