package own

import (
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Nodes is the number of Redlock nodes in an exploration: the smallest number of which not all are
// needed for a majority.
const Nodes = 3

// A Spec is the configuration that all schedules of a Runner share.
type Spec struct {
	Engine    *engine.Engine // used only by this exploration
	Strategy  lockstrategy.Entry
	Buyers    int
	Stock     int64          // units on sale
	Units     schedule.Units // units per order
	Parts     int64          // rows among which the stock is divided evenly when a schedule begins; 0: the product's own row has it
	Product   string         // its records are cleared before each schedule
	Front     Front          // the part of the shop in front of the strategy
	Events    []schedule.Event
	MaxEvents int  // maximum per schedule; 0: each may happen
	Shared    bool // all buyers in one process
	OneKey    bool // all orders have one Idempotency-Key, and each process looks it up; see purchase.Idempotent
	Full      bool // states are not needed if they cost time
}

// leavesRows reports whether a schedule leaves rows that the next one must not find, even if they are
// deleted. That applies to three buyers and more. The wait for it reduces a hundred runs per
// second to ten. In 128,000 runs of two buyers it made no difference.
func (s Spec) leavesRows() bool { return s.Strategy.Left != nil && s.Parts == 0 && s.Buyers > 2 }
