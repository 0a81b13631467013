// Package lockstrategy is the catalogue: every way to keep two buyers of the
// last unit apart, one file each, the broken ones included.
//
//	all.go        the list, in display order
//	NAME.go       one strategy: its texts, its code, its Entry (what it promises)
//	entry.go      what an Entry says
//	catalogue.json  what is generated: the texts, and what a sale sends
//	deps/         what a strategy is built from
//	lease/        a lock around the naive section of internal/purchase
//	waiting/      how the buyers of one process wait for their turn
//	rediskey/     a lock that is one key of one Redis
//	rlocker/      a lock of rlock
//	quorum/       independent Redis nodes of which a majority decides
//	zkline/       a line of nodes in ZooKeeper
//	spread/       which of a product's rows a buyer of the process takes from
//	orderstream/  the way of an admitted order from a stream in Redis to the database
//	onengine/     the one way from an engine to what a strategy is built from
//	lockstrategytest/ the conformance suite
//
// A strategy is a purchase.Strategy that gets all it needs by its constructor. None
// keeps package state, so two instances in one process are as far apart as two
// processes. Imports go one way: strategies -> rediskey -> waiting -> lease -> deps.
package lockstrategy

import (
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
)

// What a caller builds strategies from, and what a lock is. The rooms have the docs.
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

// The events of one buy, in the order in which they can occur.
const (
	Waiting  = deps.Waiting
	Acquired = deps.Acquired
	Released = deps.Released
	Lost     = deps.Lost
)

// DefaultSettings returns the settings that the shop runs with.
func DefaultSettings() Settings { return deps.DefaultSettings() }
