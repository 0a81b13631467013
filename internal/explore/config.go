package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/nearest"
)

// DatabaseWait is how long a statement of an explored buyer waits for a row lock: longer
// than the search lets a buyer stay blocked.
const DatabaseWait = time.Minute

// Bounds of Config.
const (
	MinBuyers = 2
	MaxBuyers = 8
)

// Config says what is explored.
type Config struct {
	Engine    *engine.Engine // of this exploration alone
	Strategy  lockstrategy.Entry
	Buyers    int    // MinBuyers to MaxBuyers
	Stock     int64  // units on sale
	Units     Units  // how many units the buyers ask for, each 1 to MaxBuyers
	Parts     int64  // among which the stock lies when a schedule begins, evenly; 0: it is in the product's own row
	Product   string // its records are cleared, again and again
	Events    []Event
	MaxEvents int           // of them in one schedule, at most; 0: each may happen
	Bound     int           // preemptions in one schedule, at most; negative: no bound
	Full      bool          // each schedule is run, to its end; else those that come to one state are gone on with once
	Symmetry  bool          // of buyers who have not begun the first begins: which of them it is makes no difference but in name
	Overlap   bool          // concurrent pairs: two buyers' commands may go to one server at once
	Shared    bool          // all buyers in one process
	OneKey    bool          // all orders have one Idempotency-Key
	Before    own.Front     // the part of the shop in front of the strategy; "": none
	Budget    time.Duration // for the search; 0: no bound
	Schedules int           // in the search, at most: a budget that is the same on every machine; 0: no bound
	First     bool          // end at the first violation; it need not be the shortest

	// Of a program that is not ours, see NewOn. Program is its name; "": a strategy of ours.
	// Engine, Strategy, Stock, Units and Product say nothing then.
	Program string
	Servers string // that it uses, for people: "MariaDB 10.11.6, Redis 7.0"
	Again   string // the command that explores it: "shop explore --app oversell.yaml"; for Report.Replay
	// Reduce: of orders that differ in commands that commute one is run (sleep sets). It is
	// for programs, and where every order counts it does nothing: with Full, Overlap, Shared,
	// Symmetry, a Bound, or MaxEvents.
	Reduce bool
	// Tries is how often in a row a buyer may send the same commands and get the same answers
	// while another could go on. Once more is left out: there would be as many orders as
	// there are tries.
	Tries int
	// Atomic: the owner vouches that nothing is written within a statement, see Report.Divided.
	Atomic bool
	// ShortPauses: the owner vouches for the pauses that are too short to explore, see Report.Pauses.
	ShortPauses bool

	// Progress is called after each schedule; may be nil.
	Progress func(explored, violations int)
}

// reduced: see Reduce.
func (c Config) reduced() bool {
	return c.Reduce && c.Program != "" && !c.Full && !c.Overlap && !c.Shared && !c.Symmetry && c.Bound < 0 && c.MaxEvents == 0
}

// name is that of the strategy, or of the program.
func (c Config) name() string {
	if c.Program != "" {
		return c.Program
	}
	return c.Strategy.Name
}

// nodesAlike: of a lock's nodes to which nobody has sent anything the first is asked
// first: which of them it is makes no difference but in name.
func (c Config) nodesAlike() bool {
	return c.Program == "" && !c.Full && !c.Overlap && slices.Contains(c.Strategy.Needs, lockstrategy.NeedsRedlock)
}

// Check says what is wrong with the configuration, in one line, before there is
// an engine.
func (c Config) Check() error {
	switch {
	case c.Buyers < MinBuyers || c.Buyers > MaxBuyers:
		return fmt.Errorf("--buyers must be between %d and %d (got %d)", MinBuyers, MaxBuyers, c.Buyers)
	case c.Program != "":
		return c.checkEvents()
	case slices.ContainsFunc(c.Units, func(n int64) bool { return n < 1 || n > int64(MaxBuyers) }):
		return fmt.Errorf("--units must be between 1 and %d (got %s)", MaxBuyers, c.Units)
	case len(c.Units) > c.Buyers:
		return fmt.Errorf("--units must have at most one number per buyer (got %d for %d buyers)", len(c.Units), c.Buyers)
	case c.Stock < 1 || c.Stock > int64(MaxBuyers):
		return fmt.Errorf("--stock must be between 1 and %d (got %d)", MaxBuyers, c.Stock)
	case c.leastUnits() > c.Stock:
		return fmt.Errorf("--stock must be enough for one order (got --units %s and --stock %d)", c.Units, c.Stock)
	case c.Parts < 0 || c.Parts > int64(MaxBuyers):
		return fmt.Errorf("--parts must be between 0 and %d (got %d)", MaxBuyers, c.Parts)
	case c.Parts > 0 && c.Strategy.Left == nil:
		return fmt.Errorf("--parts cannot be combined with strategy %s, which takes units only from the product's own row", c.Strategy.Name)
	}
	if err := c.checkEvents(); err != nil {
		return err
	}
	if err := c.Before.Check(c.Shared); err != nil {
		return fmt.Errorf("--before: %w", err)
	}
	if why := Ungated(c.Strategy); why != "" {
		return fmt.Errorf("strategy %s: %s", c.Strategy.Name, why)
	}
	return nil
}

func (c Config) checkEvents() error {
	if !c.Shared {
		return nil
	}
	for _, k := range schedule.Kinds() {
		if k.NotShared != "" && slices.Contains(c.Events, k.Event) {
			return fmt.Errorf("--events %s cannot be combined with --instances shared: %s", k.Event, k.NotShared)
		}
	}
	return nil
}

// Ungated says why a strategy's commands cannot be held; "" when they can.
func Ungated(e lockstrategy.Entry) string {
	for _, need := range e.Needs {
		if need == lockstrategy.NeedsZookeeper || need == lockstrategy.NeedsEtcd {
			return fmt.Sprintf("the explorer has gates for SQL and Redis, not for %s", need)
		}
	}
	return ""
}

// UngatedRedis says why nothing is explored on a Redis of that topology; "" where it is.
//
// A step is one command at one server. On a cluster one call may be several, at several
// servers (MOVED, ASK), and the state that each schedule begins from is that of a single
// server: its keys and its clock.
func UngatedRedis(kind string) string {
	if kind == "" || kind == topology.Single {
		return ""
	}
	return "the explorer stops each command before one Redis server and restores the keys of one; on a Redis of several (" + kind + ") a call may be several commands at several servers"
}

// check is Check, and whether the engine has what the strategy needs.
func (c Config) check() error {
	if err := c.Check(); err != nil {
		return err
	}
	if why := c.Strategy.Missing(onengine.Deps(c.Engine)); why != "" {
		return fmt.Errorf("strategy %s: %s", c.Strategy.Name, why)
	}
	if why := UngatedRedis(c.Engine.Topology); why != "" {
		return errors.New(why)
	}
	if why := dialect.WhyUnexplored(c.Engine.Database); why != "" {
		return errors.New("the explorer: " + why)
	}
	return nil
}

// leastUnits returns the number of units in the smallest order.
func (c Config) leastUnits() int64 {
	if len(c.Units) == 0 {
		return 1
	}
	return slices.Min(c.Units)
}

// spec is what the schedules are of.
func (c Config) spec() own.Spec {
	return own.Spec{
		Engine: c.Engine, Strategy: c.Strategy, Buyers: c.Buyers, Stock: c.Stock, Units: c.Units, Parts: c.Parts, Product: c.Product,
		Events: c.Events, MaxEvents: c.MaxEvents, Shared: c.Shared, OneKey: c.OneKey, Front: c.Before,
		Full: c.Full || c.Overlap,
	}
}

// Events returns all events in display order, or those that are possible when all buyers share
// one process.
func Events(shared bool) []Event {
	return schedule.Events(func(k schedule.Kind) bool { return !shared || k.NotShared == "" })
}

// ProgramEvents returns the events of programs under test, in display order.
func ProgramEvents() []Event {
	return schedule.Events(func(k schedule.Kind) bool { return !k.OwnOnly })
}

// ParseEvents reads a list; "all" is every event.
func ParseEvents(names []string) ([]Event, error) {
	all := Events(false)
	var events []Event
	for _, name := range names {
		switch {
		case name == "all":
			events = append(events, all...)
		case slices.Contains(all, Event(name)):
			events = append(events, Event(name))
		default:
			return nil, nearest.Unknown("event", name, append(all, "all"), "")
		}
	}
	return slices.DeleteFunc(all, func(e Event) bool { return !slices.Contains(events, e) }), nil
}
