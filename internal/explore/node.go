package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// node is one point of a schedule.
type node struct {
	choices []*schedule.Choice // that there are, the buyers in order

	// In a tree.
	parent *node
	by     *schedule.Choice   // what led here; nil at the root
	seen   string             // what a concurrent pair came to
	kids   []*node            // below a concurrent pair: the ways that it went on
	last   int                // buyer of the step before
	cost   int                // so far
	sleep  []*schedule.Choice // with Config.Reduce, see sleep.go
	mixed  bool               // schedule.Point.Mixed
	paused bool               // a buyer paused in the step that led here, see pause.go
	plain  map[string]string  // if paused: schedule.Point.Standing after each choice, by its token

	// In a graph.
	next  []*node         // where each choice leads; nil where nobody knows
	loud  []bool          // by the choice: it brings somebody a message
	from  []step          // what leads here
	ended *schedule.Ended // at the end of a schedule
}

// A step is one that was made.
type step struct {
	at *node
	by *schedule.Choice
}

// below is the node that by leads to from n, which is nil at the root.
func below(n *node, by *schedule.Choice) *node {
	kid := &node{parent: n, by: by}
	if n != nil {
		kid.last, kid.cost = after(n.last, by), n.cost+n.price(n.last, by)
	}
	return kid
}

// after is the buyer of the last step, when c follows one of last.
func after(last int, c *schedule.Choice) int {
	if c.Moves() {
		return c.Buyer
	}
	return last
}

// path are the nodes from the root to n.
func (n *node) path() (path []*node) {
	for ; n != nil; n = n.parent {
		path = append(path, n)
	}
	slices.Reverse(path)
	return path
}

// price is what a choice takes from the bound after a step of the buyer last: 1 for a
// preemption, where that buyer could have gone on; 1 for a buyer's command that
// overtakes another of its own, at a Redlock node that comes first; 1 for a
// concurrent pair.
func (n *node) price(last int, c *schedule.Choice) int {
	switch {
	case c.Pair:
		return 1
	case c.Event != "":
		return 0
	}
	preempts, overtakes, before := 0, 0, true
	for _, other := range n.choices {
		before = before && other != c
		switch {
		case !other.Command():
		case other.Buyer == c.Buyer && before:
			overtakes = 1
		case other.Buyer == last && last != c.Buyer:
			preempts = 1
		}
	}
	return preempts + overtakes
}

// inOrder are the choices as they are tried: those of the buyer of the step before go
// first, so that a schedule goes on with it where it can.
func (n *node) inOrder(last int) []*schedule.Choice {
	first, others := make([]*schedule.Choice, 0, len(n.choices)), []*schedule.Choice(nil)
	for _, c := range n.choices {
		if c.Command() && c.Buyer == last {
			first = append(first, c)
		} else {
			others = append(others, c)
		}
	}
	return append(first, others...)
}

// same: the two cannot be distinguished.
func (n *node) same(other *node) bool {
	return n.by == other.by && n.seen == other.seen && slices.Equal(n.choices, other.choices)
}
