// Package verify judges strategies under conditions, such as a fault. A cell is one strategy under one
// condition, with the promised verdict, the observed verdict, and the evidence. A play is one run of a cell.
//
//	Config.Embedded, Config.Local or Config.At -> each cell: verdict.Confirm -> one play -> Report
//	one play: fault.Testbed.Play, a rush, or the explorer -> stock and records, answers, history -> verdict
//
// Embedded, Local and At each have a file. Speed does not affect a verdict. The report shows the time until
// the next sale to another buyer separately.
package verify

import (
	"strconv"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A Strategy is a row of the matrix: a strategy with its promises.
type Strategy struct {
	fault.Subject
	// Promised returns the promise, or "" if there is none.
	Promised func(promise.Condition) verdict.Verdict
	// NoPromise says why there is no promise, or returns "". It may be nil.
	NoPromise func(promise.Condition) string
	// Lock returns the promises of the lock itself. It may be nil.
	Lock func(promise.Condition) LockRules
}

// fromCatalogue returns the row of a catalogue entry. `database` is a name as in engine.Engine.Database,
// `redis` one as in engine.Engine.Topology.
func fromCatalogue(e lockstrategy.Entry, database, redis string) Strategy {
	e = e.OnRedis(redis)
	return Strategy{
		Subject:   fault.Subject{Name: e.Name, Needs: e.Needs},
		Promised:  func(f promise.Condition) verdict.Verdict { return e.Promised(f, database) },
		NoPromise: func(f promise.Condition) string { return e.WhyNoPromise(f, database) },
		Lock: func(f promise.Condition) LockRules {
			return LockRules{Excludes: e.Excludes(f, database), Keeps: e.Lock.KeptUnder(f)}
		},
	}
}

func (s Strategy) noPromise(f promise.Condition) string {
	if s.NoPromise == nil {
		return ""
	}
	return s.NoPromise(f)
}

// Catalogue returns a row for each strategy, for a database server and a Redis of these names. If `confirmed`
// is true, replicas confirm each lock.
func Catalogue(localDB, localRedis string, confirmed bool) (rows []Strategy, _ error) {
	database, err := localserver.DatabaseNamed(localDB)
	if err != nil {
		return nil, err
	}
	redis, err := localserver.RedisNamed(localRedis)
	if err != nil {
		return nil, err
	}
	for _, e := range lockstrategy.All() {
		if confirmed {
			e = e.Confirmed()
		}
		rows = append(rows, fromCatalogue(e, database.Database, redis.Name))
	}
	return rows, nil
}

// A Config says which cells a run plays, and how.
type Config struct {
	Command    string     // command line for the report
	Strategies []Strategy // the rows
	Faults     []promise.Condition
	Conns      int // connections of each process to the database

	SoldOutCheck bool // the shops run the sold-out check before each strategy
	Admission    bool // the shops run the admission control before each strategy

	Ended    func(last Cell, sofar Report)    // called when a cell is complete, one call at a time
	Progress func(format string, args ...any) // called while cells run, one call at a time
	Warn     func(string)                     // called for possible problems of the servers

	// The other fields apply only to Local.
	Launch     fault.Launch // starts a shop with failpoints
	Times      fault.Times  // waits and leases of the shops under a fault; zero means fault.DefaultTimes
	History    string       // folder of the cells' histories; "" for none
	LocalDB    string       // database server, a name in localserver.DatabaseServers; "" is the default
	LocalRedis string       // Redis topology, a name in localserver.RedisServers; "" is a single server
	Redlock    int          // number of Redlock nodes
	RedisWait  int          // number of replicas that must confirm each lock of the shops
	Lanes      int          // number of sets of servers; on each of them, one cell runs at a time
	Repeat     int          // number of runs of each cell; all cells run once before any runs again; 0 means 1
}

func (c Config) shopFlags() (flags []string) {
	if c.SoldOutCheck {
		flags = append(flags, "--sold-out-check")
	}
	if c.Admission {
		flags = append(flags, "--admission=adaptive")
	}
	if c.RedisWait > 0 {
		flags = append(flags, "--redis-wait", strconv.Itoa(c.RedisWait))
	}
	return flags
}
