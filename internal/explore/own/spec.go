package own

import (
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Nodes is how many Redlock nodes an exploration uses: the fewest with a
// majority that is not all.
const Nodes = 3

// A Spec is what schedules are of.
type Spec struct {
	Engine    *engine.Engine // of this exploration alone
	Strategy  lockstrategy.Entry
	Buyers    int
	Stock     int64          // units on sale
	Units     schedule.Units // how many units the buyers ask for
	Parts     int64          // among which the stock lies when a schedule begins, evenly; 0: it is in the product's own row
	Product   string         // its records are cleared, again and again
	Front     Front          // the part of the shop in front of the strategy
	Events    []schedule.Event
	MaxEvents int  // of them in one schedule, at most; 0: each may happen
	Shared    bool // all buyers in one process
	OneKey    bool // all orders have one Idempotency-Key, and each process looks it up, see purchase.Idempotent
	Full      bool // no states are wanted, where they cost something
}

// leavesRows: a schedule makes rows that the next one must not find, not even deleted. That is of
// three buyers and more: the wait for it makes ten runs a second of a hundred, and in 128,000
// runs of two buyers none went another way than before.
func (s Spec) leavesRows() bool { return s.Strategy.Left != nil && s.Parts == 0 && s.Buyers > 2 }
