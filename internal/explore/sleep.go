package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Sleep sets (Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", LNCS 1032, 1996, chapter
// 5) avoid equivalent schedules. If schedules differ only in the order of adjacent commuting steps, the search runs one
// to its end. Let a and b be choices of one node that commute: "b, a" leads to the same state as "a, b". After b, the
// choice a sleeps: the search does not make it before a step that does not commute with a. If all choices sleep, the
// run can end, since other runs cover every continuation.
//
// Which choices sleep depends on the order of a node's choices, not on when they are explored. So the frontier, which
// holds the choices to explore, may use any order.

// awake returns the choices of n that do not sleep, in the order of exploration.
func (n *node) awake() []*schedule.Choice {
	ordered := n.inOrder(n.last)
	if len(n.sleep) == 0 {
		return ordered
	}
	return slices.DeleteFunc(ordered, func(c *schedule.Choice) bool { return slices.Contains(n.sleep, c) })
}

// asleepBelow returns the choices that sleep after the given choice `by` of n. They commute with `by`, and they sleep
// at n already or are explored before `by`.
func (n *node) asleepBelow(by *schedule.Choice) (sleep []*schedule.Choice) {
	if n.mixed {
		return nil
	}
	before := n.awake()
	if n.races {
		before = n.taken
	}
	before = before[:max(0, slices.Index(before, by))]
	for _, c := range slices.Concat(n.sleep, before) {
		if independent(c, by) {
			sleep = append(sleep, c)
		}
	}
	return sleep
}
