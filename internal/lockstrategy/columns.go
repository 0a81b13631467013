package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/verdict"
)

// Columns of the matrix beside Faults(): what a service is asked from outside
// alone, and the explorer's.
const (
	// Duplicates is one request sent twice under one Idempotency-Key, and again
	// when it has been answered.
	Duplicates Fault = "duplicates"

	// Those of the explorer: every order of two buyers' commands, each buyer in a
	// process of its own; and the same with an event that may come at any step.
	Explore       Fault = "explore"
	ExploreExpire Fault = "explore-expire" // every lease runs out, unnoticed by its holder
	ExploreCrash  Fault = "explore-crash"  // a buyer is never heard of again
	ExploreForget Fault = "explore-forget" // one Redis loses its keys
)

// TargetFaults are those that need nothing of a service but its routes.
func TargetFaults() []Fault { return []Fault{Rush, ClientGone, Latency, Duplicates} }

// Explorations are the explorer's columns.
func Explorations() []Fault { return []Fault{Explore, ExploreExpire, ExploreCrash, ExploreForget} }

// Columns are all in display order.
func Columns() []Fault { return append(append(Explorations(), Faults()...), Duplicates) }

// Explored is the verdict that an exploration of two buyers and one unit must
// come to on a database, and whether there is one to make. What breaks by order
// alone is not asked about events. "" where the catalogue makes no promise.
//
// It follows from the promises under faults that do the same to a strategy: two
// processes, a pause beyond the lease, the holder's crash, a Redis that comes
// back empty. Two differ, since an event comes at any step and the fault only
// while the holder is in its section: between the two commands of setnx-expire a
// crash locks for ever, and between the first two of redis-decr a counter that is
// forgotten refuses everybody.
func (e Entry) Explored(f Fault, database string) (promise verdict.Verdict, possible bool) {
	if slices.Contains(e.Needs, NeedsZookeeper) || slices.Contains(e.Needs, NeedsEtcd) {
		return "", false // the explorer has gates for SQL and Redis
	}
	if f == Explore {
		return e.Promised(TwoProcesses, database), true
	}
	if e.Promised(TwoProcesses, database) != verdict.Holds {
		return "", false
	}
	switch {
	case f == ExploreCrash && e.Name == "setnx-expire":
		return verdict.Stalled, true
	case f == ExploreForget && e.Name == "redis-decr":
		return verdict.Leaked, true
	case f == ExploreCrash:
		return e.Promised(Crash, database), true
	case f == ExploreExpire && e.leased():
		return e.Promised(Pause, database), true
	case f == ExploreForget && RedisRestart.Strikes(e.Needs):
		return e.Promised(RedisRestart, database), true
	case f == ExploreForget && NodeRestart.Strikes(e.Needs):
		return e.Promised(NodeRestart, database), true
	}
	return "", false
}

// leased: what it locks with runs out by itself.
func (e Entry) leased() bool {
	return len(e.Needs) > 0 && e.Promise[Pause] == verdict.Oversold || e.Name == "fenced" // the late holder is refused
}
