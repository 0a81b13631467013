package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/nearest"
)

// DatabaseWait is how long a statement of an explored buyer may wait for a row lock. The search never lets a buyer stay
// blocked that long.
const DatabaseWait = time.Minute

// Limits of Config.Buyers.
const (
	MinBuyers = 2
	MaxBuyers = 8
)

// Config selects the subject of a search and sets its limits. If Program is set, the fields of OfStrategy are ignored.
type Config struct {
	OfStrategy
	OfProgram

	Buyers    int // MinBuyers to MaxBuyers
	Events    []Event
	MaxEvents int           // maximum number of events per schedule; 0: no limit
	Bound     int           // maximum number of preemptions (switches away from a buyer that could continue) per schedule; negative: unlimited
	Full      bool          // run every schedule to its end; otherwise, the search merges equal states
	Symmetry  bool          // only the lowest-numbered buyer that has not started may start (symmetry reduction)
	Overlap   bool          // explore concurrent pairs, too: two buyers' commands sent to one server at once
	Shared    bool          // all buyers in one process
	Budget    time.Duration // time for the search; 0: unlimited
	Schedules int           // maximum number of runs, which, unlike Budget, is the same on every machine; 0: unlimited
	First     bool          // stop at the first violation, although a shorter one may exist

	// Progress is called after each schedule; may be nil.
	Progress func(explored, violations int)
}

// reduced reports whether Reduce has an effect, given the other fields.
func (c Config) reduced() bool {
	return c.Reduce && !c.Full && !c.Overlap && !c.Shared && !c.Symmetry && c.Bound < 0 && c.MaxEvents == 0
}

// nodesAlike reports whether symmetry reduction applies to the Redis nodes of a lock. If it does, the search offers
// only the first of the nodes that have received no command.
func (c Config) nodesAlike() bool {
	return !c.Full && !c.Overlap && slices.Contains(c.Strategy.Needs, lockstrategy.NeedsRedlock)
}

// Check returns the first mistake in the configuration, as one line. It needs no open engine.
func (c Config) Check() error {
	if c.Buyers < MinBuyers || c.Buyers > MaxBuyers {
		return fmt.Errorf("--buyers must be between %d and %d (got %d)", MinBuyers, MaxBuyers, c.Buyers)
	}
	return c.mode().check()
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

// Ungated returns why the explorer cannot hold back the commands of a strategy; "" if it can.
func Ungated(e lockstrategy.Entry) string {
	for _, need := range e.Needs {
		if need == lockstrategy.NeedsZookeeper || need == lockstrategy.NeedsEtcd {
			return fmt.Sprintf("the explorer has gates for SQL and Redis, not for %s", need)
		}
	}
	return ""
}

// UngatedRedis returns why the explorer does not support a Redis of the given topology; "" if it does.
//
// On a cluster, one call of the client may send several commands to several servers (MOVED, ASK). But a step of a
// schedule is one command at one server. Also, the explorer restores the keys and the clock of a single server before
// each schedule.
func UngatedRedis(kind string) string {
	if kind == "" || kind == topology.Single {
		return ""
	}
	return "no exploration: the explorer works with a single Redis server, and this Redis has several (" + kind + ")"
}

// check calls Check, and also checks whether the engine has everything that the strategy needs.
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

func (c Config) leastUnits() int64 {
	if len(c.Units) == 0 {
		return 1
	}
	return slices.Min(c.Units)
}

func (c Config) spec() own.Spec {
	return own.Spec{
		Engine: c.Engine, Strategy: c.Strategy, Buyers: c.Buyers, Stock: c.Stock, Units: c.Units, Parts: c.Parts, Product: c.Product,
		Events: c.Events, MaxEvents: c.MaxEvents, Shared: c.Shared, OneKey: c.OneKey, Front: c.Before,
		Full: c.Full || c.Overlap,
	}
}

// Events returns all events in display order. If `shared` is true, it returns only the events that are possible when
// all buyers share one process.
func Events(shared bool) []Event {
	return schedule.Events(func(k schedule.Kind) bool { return !shared || k.NotShared == "" })
}

// ProgramEvents returns the events that are possible with programs under test, in display order.
func ProgramEvents() []Event {
	return schedule.Events(func(k schedule.Kind) bool { return !k.OwnOnly })
}

// ParseEvents parses a list of event names; "all" means every event.
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
