package own

import (
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Nodes is the number of Redlock nodes in an exploration. Three is the smallest number of which a majority is not all.
const Nodes = 3

// A Spec is the configuration that all schedules of a Runner share.
type Spec struct {
	Engine    *engine.Engine // used only by this exploration
	Strategy  lockstrategy.Entry
	Buyers    int
	Stock     int64          // units on sale
	Units     schedule.Units // units per order
	Parts     int64          // number of rows with equal parts of the stock; 0: all stock is in the product's row
	Product   string         // its records of sales are deleted before each schedule
	Front     Front          // the part of the shop that runs before the strategy
	Events    []schedule.Event
	MaxEvents int  // maximum number of events per schedule; 0: each event may happen once
	Shared    bool // all buyers in one process
	OneKey    bool // all purchases have the same Idempotency-Key, and each process looks it up, see purchase.Idempotent
	Full      bool // the search uses no states, so the runner computes them only if that costs no time
}

// leavesRows reports whether the explorer waits until the server has purged the deleted rows of a schedule, since they
// could influence the next one. The wait reduces a hundred runs per second to ten. In 128,000 runs of two buyers it
// made no difference, so it applies only to more buyers.
func (s Spec) leavesRows() bool { return s.Strategy.Left != nil && s.Parts == 0 && s.Buyers > 2 }
