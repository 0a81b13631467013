package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// A variation is a further short search by the explorer, for the condition "explore".
type variation struct {
	flags  string                                               // flags of shop explore
	holds  func(entry lockstrategy.Entry, database string) bool // reports whether the strategy promises to hold in this search
	config func(c *explore.Config)
}

func variations() []variation {
	return []variation{
		{"--instances shared --stock 4 --units 3,2 --events disconnect --bound 1", holdsInMemory, func(c *explore.Config) {
			c.Shared, c.Stock, c.Units, c.Events, c.Bound = true, 4, explore.Units{3, 2}, []explore.Event{explore.Disconnect}, 1
		}},
		{"--one-key --stock 3 --units 1,2 --bound 1", holdsBetweenProcesses, func(c *explore.Config) {
			c.OneKey, c.Stock, c.Units, c.Bound = true, 3, explore.Units{1, 2}, 1
		}},
		{"--before failing-read --bound 1", holdsBetweenProcesses, func(c *explore.Config) { c.Before, c.Bound = "failing-read", 1 }},
		{"--buyers 3 --events expire,forget --bound 1", outlivesLease, func(c *explore.Config) {
			c.Buyers, c.Bound, c.Symmetry, c.Events = 3, 1, true, []explore.Event{explore.Expire, explore.Forget}
		}},
	}
}

// holdsInMemory reports whether the strategy's buyers wait for each other inside one process. The cell's own
// search runs each buyer in its own process, so it cannot test that.
func holdsInMemory(e lockstrategy.Entry, database string) bool {
	return len(e.Needs) == 0 && e.WaitsFor != lockstrategy.WaitRow && e.Promised(promise.Rush, database) == verdict.Holds
}

func holdsBetweenProcesses(e lockstrategy.Entry, database string) bool {
	return e.Promised(promise.TwoProcesses, database) == verdict.Holds
}

// outlivesLease reports whether neither an expired nor a forgotten lease breaks the strategy. The lease is in
// Redis, so a search on one database is enough, and SQLite is the fastest.
func outlivesLease(e lockstrategy.Entry, database string) bool {
	return database == dialect.SQLite && !slices.ContainsFunc([]promise.Condition{promise.ExploreExpire, promise.ExploreForget}, func(c promise.Condition) bool {
		v, possible := e.Explored(c, database)
		return !possible || v != verdict.Holds
	})
}

// vary runs each variation that applies to the strategy of `base`. The first variation that does not hold
// decides the cell. Then vary returns `broke` as true, even if the cell itself promises that verdict.
func (c *Cell) vary(ctx context.Context, base explore.Config) (broke bool, _ error) {
	var held []string
	for _, v := range variations() {
		if !v.holds(base.Strategy, base.Engine.Database) {
			continue
		}
		x := exploration{Config: base}
		x.First, x.Parts = true, 0
		v.config(&x.Config)
		if err := x.search(ctx); err != nil {
			return false, err
		}
		found, why := x.verdict()
		if found == verdict.Holds {
			held = append(held, v.flags)
			continue
		}
		c.Verdict, c.Reason, c.Struck, c.Witness = found, "with "+v.flags+": "+why, x.extent(), nil
		c.Replay = "shop explore " + c.Strategy + engine.Flags(base.Engine.Name, base.Engine.URLs.LocalDB, base.Engine.URLs.LocalRedis) + " " + v.flags
		if w := x.result.Witness; w != nil {
			if err := c.witnessed(w); err != nil {
				return false, err
			}
			c.Audited = audit.Sums{} // the steps of a schedule count records and not units
		}
		return true, nil
	}
	if len(held) > 0 {
		c.Struck += "; also with " + strings.Join(held, ", with ")
	}
	return false, nil
}
