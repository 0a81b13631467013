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

// DatabaseWait is how long a statement of an explored buyer waits for a row lock: longer than the
// search lets a buyer stay blocked.
const DatabaseWait = time.Minute

// Bounds of Config.
const (
	MinBuyers = 2
	MaxBuyers = 8
)

// Config says what is explored.
type Config struct {
	Engine    *engine.Engine // used only by this exploration
	Strategy  lockstrategy.Entry
	Buyers    int    // MinBuyers to MaxBuyers
	Stock     int64  // units on sale
	Units     Units  // units that the buyers ask for, each 1 to MaxBuyers
	Parts     int64  // rows among which the stock is divided evenly when a schedule begins; 0: the product's own row has it
	Product   string // its records are cleared before each schedule
	Events    []Event
	MaxEvents int           // maximum number of events per schedule; 0: each may happen
	Bound     int           // maximum number of preemptions per schedule; negative: unlimited
	Full      bool          // run every schedule to its end; otherwise, equal states are continued once
	Symmetry  bool          // only the first of the buyers that have not begun may begin, since they differ only in name
	Overlap   bool          // concurrent pairs: two buyers' commands may go to one server at once
	Shared    bool          // all buyers in one process
	OneKey    bool          // all orders have one Idempotency-Key
	Before    own.Front     // the part of the shop in front of the strategy; "": none
	Budget    time.Duration // time for the search; 0: unlimited
	Schedules int           // maximum number of runs, a budget that is the same on every machine; 0: unlimited
	First     bool          // end at the first violation, which need not be the shortest

	// For a program under test, see NewOn. Program is its name; "" means a strategy of the catalogue.
	// With a Program, Engine, Strategy, Stock, Units and Product have no meaning.
	Program string
	Servers string // its servers, for people: "MariaDB 10.11.6, Redis 7.0"
	Again   string // the command that explores it, for Report.Replay: "shop explore --app oversell.yaml"
	// Reduce runs one of the schedules that differ only in commuting commands (sleep sets). It is for
	// programs. It does nothing where every schedule counts: with Full, Overlap, Shared, Symmetry, a
	// Bound, or MaxEvents.
	Reduce bool
	// Tries is how often in a row a buyer may send the same commands and get the same answers while
	// another buyer could continue. One more is left out, since each number of retries would be a
	// schedule.
	Tries int
	// Ignore lists the commands of the program's own work that are no steps, as the file has them.
	Ignore []string
	// Split holds a program's statements inside the database: one that commits by itself is two steps where
	// another buyer's command could notice. It is --overlap of a program; Overlap means nothing there.
	Split bool
	// Atomic reports that the owner vouches for statements that read and write, see Report.Divided.
	Atomic bool
	// ShortPauses reports that the owner vouches for pauses that are too short to explore, see
	// Report.Pauses.
	ShortPauses bool

	// Progress is called after each schedule; may be nil.
	Progress func(explored, violations int)
}

// reduced reports whether Reduce has an effect.
func (c Config) reduced() bool {
	return c.Reduce && c.Program != "" && !c.Full && !c.Overlap && !c.Shared && !c.Symmetry && c.Bound < 0 && c.MaxEvents == 0
}

// name returns the name of the strategy or program.
func (c Config) name() string {
	if c.Program != "" {
		return c.Program
	}
	return c.Strategy.Name
}

// nodesAlike reports whether only the first of a lock's unasked nodes may be asked first, since they
// differ only in name.
func (c Config) nodesAlike() bool {
	return c.Program == "" && !c.Full && !c.Overlap && slices.Contains(c.Strategy.Needs, lockstrategy.NeedsRedlock)
}

// Check returns what is wrong with the configuration, in one line, before an engine is opened.
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

// Ungated returns why a strategy's commands cannot be held; "" if they can.
func Ungated(e lockstrategy.Entry) string {
	for _, need := range e.Needs {
		if need == lockstrategy.NeedsZookeeper || need == lockstrategy.NeedsEtcd {
			return fmt.Sprintf("the explorer has gates for SQL and Redis, not for %s", need)
		}
	}
	return ""
}

// UngatedRedis returns why a Redis of that topology is not explored; "" if it is.
//
// A step is one command at one server. On a cluster, one call may be several commands at several
// servers (MOVED, ASK). The state at the start of each schedule consists of the keys and the clock of a
// single server.
func UngatedRedis(kind string) string {
	if kind == "" || kind == topology.Single {
		return ""
	}
	return "the explorer stops each command before one Redis server and restores the keys of one; on a Redis of several (" + kind + ") a call may be several commands at several servers"
}

// check is Check, and also checks whether the engine has what the strategy needs.
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

// spec returns the part of the configuration that package own needs.
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
