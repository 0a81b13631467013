// Package promise has the words that verdicts are promised under. The catalogue of
// strategies promises in them, internal/judge/verify judges in them, and internal/fault
// makes the faults among them happen.
//
// A condition is a column of the matrix. Three kinds of them exist: a crowd with
// nothing wrong (rush, units, two-products, two-processes), a fault, and an exploration of every order
// of two buyers' commands. The room imports nothing but the verdicts, so both sides
// of a promise may use it.
package promise

import (
	"slices"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Condition is what a shop goes through in one run.
type Condition string

// The crowds. Nothing goes wrong.
const (
	Rush         Condition = "rush"          // many buyers at one process
	Units        Condition = "units"         // the same, and each asks for two or fourteen units
	TwoProducts  Condition = "two-products"  // the same, for two products in turn, which must not wait for each other
	TwoProcesses Condition = "two-processes" // the same, spread over two processes
)

// Duplicates is one request that is sent under one Idempotency-Key to two processes at
// once, to both again after its answer, and once more after a restart of one of them. A
// service that is judged from outside gets it twice at once, and again.
const Duplicates Condition = "duplicates"

// FirstUse is a crowd at each of many new products, in a process that was just started:
// what the shop makes when it first sees a product is made by several buyers at once.
// It is played in a shop that is built with the race detector.
const FirstUse Condition = "first-use"

// The explorations: every order of two buyers' commands, each buyer in a process of
// its own; and the same with one event that may come at any step.
const (
	Explore       Condition = "explore"
	ExploreExpire Condition = "explore-expire" // every lease runs out, and its holder does not notice
	ExploreCrash  Condition = "explore-crash"  // a buyer is never heard of again
	ExploreForget Condition = "explore-forget" // one Redis loses its keys
)

// Crowds lists the conditions under which nothing goes wrong.
func Crowds() []Condition { return []Condition{Rush, Units, TwoProducts, TwoProcesses} }

// Played lists what shops on real servers go through, in display order: the crowds,
// then the faults, then Duplicates. The catalogue makes its promises under these.
func Played() []Condition { return append(append(Crowds(), Faults()...), Duplicates) }

// Explorations lists the columns of the explorer in display order.
func Explorations() []Condition {
	return []Condition{Explore, ExploreExpire, ExploreCrash, ExploreForget}
}

// OfTarget lists the conditions that need nothing of a service but its routes.
func OfTarget() []Condition { return []Condition{Rush, ClientGone, Latency, Duplicates} }

// Watched lists the conditions that are played under the race detector.
func Watched() []Condition { return []Condition{Rush, FirstUse} }

// Columns lists every condition in display order.
func Columns() []Condition {
	return slices.Concat(Explorations(), Crowds(), Faults(), []Condition{FirstUse, Duplicates})
}

// About says in a line what happens under a condition; "" for a fault, see fault.Fault.About.
func About(c Condition) string {
	switch c {
	case Explore:
		return "every order of two buyers' commands, each buyer in a process of its own"
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
		return "buyers at once, at one process, for two products in turn; a sale of one must not wait for the other"
	case TwoProcesses:
		return "200 buyers at once, spread over two processes, for 100 units"
	case FirstUse:
		return "buyers at once, for many new products, at a process that has just started, under the race detector"
	case Duplicates:
		return "one request under one Idempotency-Key: at once at two processes, again after its answer, and again after a restart"
	}
	return ""
}

// A Promise is the verdict that is expected under each condition. A condition that
// is not in it is not promised.
type Promise map[Condition]verdict.Verdict

// BreaksFrom is the promise of a strategy that is oversold under first, and so under
// every condition of Played after it.
func BreaksFrom(first Condition) Promise {
	p := Promise{}
	for _, c := range Played()[slices.Index(Played(), first):] {
		p[c] = verdict.Oversold
	}
	return p
}
