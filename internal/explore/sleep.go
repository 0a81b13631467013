package explore

import (
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Sleep sets (Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems",
// LNCS 1032, 1996, chapter 5): of orders that differ only in neighbours that commute, one is
// run to its end. Where the choices a and b of a node are independent, what b leads to by a is
// where a has led by b. So below b, a sleeps: it is not chosen, until a step has come that it
// does not commute with. Where all choices sleep every order that could follow is run elsewhere.
//
// The order of a node's choices decides what sleeps, not the time at which its branches are run.
// So they may be run in any order, as the frontier's.

// awake are the choices of n that do not sleep, as they are tried.
func (n *node) awake() []*schedule.Choice {
	ordered := n.inOrder(n.last)
	if len(n.sleep) == 0 {
		return ordered
	}
	return slices.DeleteFunc(ordered, func(c *schedule.Choice) bool { return slices.Contains(n.sleep, c) })
}

// asleepBelow is what sleeps below the choice by of n: what sleeps here, and what is tried
// before by, as far as it commutes with by.
func (n *node) asleepBelow(by *schedule.Choice) (sleep []*schedule.Choice) {
	if n.mixed {
		return nil
	}
	before := n.awake()
	before = before[:max(0, slices.Index(before, by))]
	for _, c := range slices.Concat(n.sleep, before) {
		if independent(c, by) {
			sleep = append(sleep, c)
		}
	}
	return sleep
}
