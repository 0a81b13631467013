// Package promise defines the conditions under which the catalogue makes promises about a strategy, such as a
// fault. internal/judge/verify judges the promises, and internal/fault injects the faults.
//
// A condition is a column of the matrix that `shop verify` prints. There are three kinds: a rush (burst of
// buyers) without a fault, a fault, and an exploration of every schedule of two buyers. The package imports
// only the verdicts, so the catalogue and the judge can both import it.
package promise

import (
	"slices"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Condition is the situation in which a run tests a strategy.
type Condition string

// Rushes without faults.
const (
	Rush         Condition = "rush"          // many buyers at one process
	Units        Condition = "units"         // a rush in which each buyer asks for two or fourteen units
	TwoProducts  Condition = "two-products"  // a rush for two products; buyers of one product must not wait for those of the other
	TwoProcesses Condition = "two-processes" // a rush that is distributed over two processes
)

// Duplicates sends one request with one Idempotency-Key several times: to two processes at once, to both again
// after the answer, and to one of them after its restart. The test cannot restart a running service. So such a
// service gets the request twice at once, and once more later.
const Duplicates Condition = "duplicates"

// The explorations run every schedule (order of steps) of two buyers, each in a process of its own. All except
// Explore add one event at any step.
const (
	Explore       Condition = "explore"
	ExploreExpire Condition = "explore-expire" // every lease expires, and its holder does not notice
	ExploreCrash  Condition = "explore-crash"  // a buyer crashes
	ExploreForget Condition = "explore-forget" // a Redis server loses its keys
)

// Crowds lists the rushes without a fault in display order.
func Crowds() []Condition { return []Condition{Rush, Units, TwoProducts, TwoProcesses} }

// Played lists the conditions of shops on real servers in display order: the rushes, the faults,
// and Duplicates. The catalogue makes its promises under these conditions.
func Played() []Condition { return append(append(Crowds(), Faults()...), Duplicates) }

// Explorations lists the explorer's columns in display order.
func Explorations() []Condition {
	return []Condition{Explore, ExploreExpire, ExploreCrash, ExploreForget}
}

// OfTarget lists the conditions that can be tested through a service's HTTP routes alone.
func OfTarget() []Condition { return []Condition{Rush, ClientGone, Latency, Duplicates} }

// Columns lists every condition in display order.
func Columns() []Condition {
	return slices.Concat(Explorations(), Crowds(), Faults(), []Condition{Duplicates})
}

// About describes a condition in one line. It returns "" for a fault, since package fault describes the faults.
func About(c Condition) string {
	switch c {
	case Explore:
		return "every order of two buyers' commands, each buyer in its own process; further searches: one shared process, one Idempotency-Key, the sold-out check, three buyers"
	case ExploreExpire:
		return "the same; at any step, every lease expires and its holder does not notice"
	case ExploreCrash:
		return "the same; at any step, a buyer disappears"
	case ExploreForget:
		return "the same; at any step, one Redis server loses its keys"
	case Rush:
		return "200 buyers at once, at one process, for 100 units"
	case Units:
		return "buyers at once, at one process; each asks for 2 or 14 units"
	case TwoProducts:
		return "many buyers at once, at one process; every second buyer wants the other product; a sale of one product must not wait for the other"
	case TwoProcesses:
		return "200 buyers at once, spread over two processes, for 100 units"
	case Duplicates:
		return "one request, sent several times under one Idempotency-Key: to two processes at once, after its answer, and after a restart"
	}
	return ""
}

// A Promise maps conditions to expected verdicts. There is no promise under a condition that it does not contain.
type Promise map[Condition]verdict.Verdict

// BreaksFrom returns the promise to oversell under `first` and under all conditions after it in Played.
func BreaksFrom(first Condition) Promise {
	p := Promise{}
	for _, c := range Played()[slices.Index(Played(), first):] {
		p[c] = verdict.Oversold
	}
	return p
}

// BreaksAll reports whether a condition breaks every strategy. No lock and no isolation level restores
// commits that the database has lost.
func BreaksAll(c Condition) bool { return c == DBFailoverAsync }
