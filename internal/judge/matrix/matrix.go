// Package matrix plays the cells of a run of `shop verify` and collects them in a report.
// The embedded engine, private servers, and a service that already runs each have a file.
package matrix

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A Config says which cells a run plays.
type Config struct {
	Command    string            // for the report
	Strategies []verify.Strategy // the rows
	Faults     []promise.Condition
	Conns      int      // connections of each process to the database
	Needs      []string // lock servers that the explorer's private servers include; nil: all

	SoldOutCheck bool // the shops run the sold-out check before each strategy
	Admission    bool // the shops run the admission control before each strategy

	Ended    func(last verify.Cell, sofar verify.Report) // called as each cell ends
	Progress func(format string, args ...any)            // called while cells are played
	Warn     func(string)                                // called for what may be wrong with the servers
}

// Catalogue returns a row for each strategy, on private servers of these names. If confirmed,
// replicas confirm each lock.
func Catalogue(localDB, localRedis string, confirmed bool) (rows []verify.Strategy, _ error) {
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
		rows = append(rows, verify.FromCatalogue(e, database.Database, redis.Name))
	}
	return rows, nil
}

// shopFlags returns the flags of serve that enable the checks before each strategy.
func (c Config) shopFlags() (flags []string) {
	if c.SoldOutCheck {
		flags = append(flags, "--sold-out-check")
	}
	if c.Admission {
		flags = append(flags, "--admission=adaptive")
	}
	return flags
}

// oneByOne plays cells one after the other: the explorer looks at every goroutine
// of the process.
type oneByOne struct {
	Config
	report verify.Report
}

func (c Config) start(engineName string) *oneByOne {
	return &oneByOne{c, verify.Report{Engine: engineName, Command: c.Command, Started: time.Now()}}
}

// add adds a cell. If the harness failed and was not interrupted, the cell says so and failed is
// true: the servers of that cell must not be used again.
func (r *oneByOne) add(ctx context.Context, start time.Time, cell verify.Cell, err error) (failed bool, _ error) {
	if err != nil {
		if ctx.Err() != nil {
			return false, fmt.Errorf("%s under %s: %w", cell.Strategy, cell.Fault, err)
		}
		cell = cell.Failed(err)
		cell.DurationMS = time.Since(start).Milliseconds()
	}
	r.report.Cells = append(r.report.Cells, cell)
	r.Ended(cell, r.report)
	return err != nil, nil
}
