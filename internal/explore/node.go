package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A node is one point of a schedule, with its choices and their results.
type node struct {
	choices []*schedule.Choice // all choices, sorted by buyer

	// The next fields apply to a tree, which explores each schedule separately.
	parent *node
	by     *schedule.Choice   // the choice that led here; nil at the root
	seen   string             // which result of a concurrent pair led here
	kids   []*node            // only below a concurrent pair: one node for each result that a run has seen
	last   int                // buyer of the last step
	cost   int                // cost of the path from the root
	sleep  []*schedule.Choice // with Config.Reduce: choices that another branch covers, see sleep.go
	mixed  bool               // an answer may depend on the order of two other buyers, so no choices commute here (schedule.Point.Mixed)
	races  bool               // other buyers' choices are explored only if they race (schedule.Point.Races)
	taken  []*schedule.Choice // if races is set: the choices that became branches, in that order
	paused bool               // a buyer paused in the step that led here
	plain  map[string]string  // if paused: by token of the next choice, which commands then wait on which connections

	// The next fields apply to a graph, which merges equal states.
	next  []*node         // the node to which each choice leads; nil: unknown
	loud  []bool          // by choice: whether it delivers a message
	from  []step          // the steps that lead here; several if states were merged
	ended *schedule.Ended // the end of the schedule, if it ends here
}

// A step is a choice that was made at a node.
type step struct {
	at *node
	by *schedule.Choice
}

// below returns a new node that follows n after the given choice. For the root, n is nil.
func below(n *node, by *schedule.Choice) *node {
	kid := &node{parent: n, by: by}
	if n != nil {
		kid.last, kid.cost = after(n.last, by), n.cost+n.price(n.last, by)
	}
	return kid
}

// after returns the buyer of the last move after choice c: c's buyer or, if c moves no buyer, `last`.
func after(last int, c *schedule.Choice) int {
	if c.Moves() {
		return c.Buyer
	}
	return last
}

func (n *node) path() (path []*node) {
	for ; n != nil; n = n.parent {
		path = append(path, n)
	}
	slices.Reverse(path)
	return path
}

// price returns the cost of a choice after a step of the buyer `last`. The price is 1 for a preemption: `last` could
// continue, but another buyer moves. It is also 1 for a concurrent pair, and for a command that overtakes the same
// buyer's command at an earlier Redlock node.
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

// inOrder returns the choices in the order of exploration. The choices of the last step's buyer come first, to
// avoid switches.
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

func (n *node) same(other *node) bool {
	return n.by == other.by && n.seen == other.seen && slices.Equal(n.choices, other.choices)
}
