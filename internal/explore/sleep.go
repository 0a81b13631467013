package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Sleep sets (Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", LNCS 1032, 1996, chapter
// 5): of the schedules that differ only in the order of adjacent commuting steps, the search runs one to its end. If
// the choices a and b of a node are independent, "b, a" leads to the same state as "a, b". So after b, the choice a
// sleeps: the search does not make it before a step that does not commute with it. If all choices sleep, other runs
// cover every continuation.
//
// Which choices sleep depends on the order of a node's choices, not on when its branches run. So the frontier may
// run them in any order.

// awake returns the choices of n that do not sleep, in the order of exploration.
func (n *node) awake() []*schedule.Choice {
	ordered := n.inOrder(n.last)
	if len(n.sleep) == 0 {
		return ordered
	}
	return slices.DeleteFunc(ordered, func(c *schedule.Choice) bool { return slices.Contains(n.sleep, c) })
}

// asleepBelow returns the choices that sleep after the given choice of n. They sleep at n, or are explored before that
// choice, and they commute with it.
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
