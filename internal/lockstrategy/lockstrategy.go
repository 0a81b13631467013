// Package lockstrategy is the catalogue of lock strategies: every way to keep two buyers from
// buying the same unit, one file each. It includes broken strategies.
//
//	all.go        the list, in display order
//	NAME.go       one strategy: its texts, its code, its Entry (what it promises)
//	entry.go      Entry, the description of a strategy
//	catalogue.json  generated: the texts, and the commands of one purchase
//	deps/         the dependencies of a strategy
//	lease/        a lock around the naive section of internal/purchase
//	waiting/      queues, polls and groups for the buyers of one process
//	rediskey/     a lock that is one key of one Redis
//	rlocker/      a lock of rlock
//	quorum/       a lock on a majority of independent Redis nodes
//	zkline/       a queue of nodes in ZooKeeper
//	spread/       selects the row of a product from which a buyer takes
//	orderstream/  moves admitted orders from a stream in Redis to the database
//	onengine/     connects strategies to an engine
//	lockstrategytest/ the conformance suite
//
// A strategy is a purchase.Strategy that gets everything it needs in its constructor. No strategy uses
// package variables, so two instances in one process share no more than two processes do. Imports go one
// way: strategies -> rediskey -> waiting -> lease -> deps.
package lockstrategy

import (
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
)

// Aliases of the types that a caller needs to build strategies and to use locks. The subpackages document them.
type (
	Deps      = deps.Deps
	Settings  = deps.Settings
	Event     = deps.Event
	EventKind = deps.EventKind
	Observer  = deps.Observer
	Locker    = lease.Locker
	Lease     = lease.Lease
	Locked    = lease.Locked
)

// The events of one buy. Lost can also come before Released.
const (
	Waiting  = deps.Waiting
	Acquired = deps.Acquired
	Released = deps.Released
	Lost     = deps.Lost
)

// DefaultSettings returns the settings of a normal shop.
func DefaultSettings() Settings { return deps.DefaultSettings() }
