package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// oneByOne plays cells one after the other: the explorer looks at every goroutine
// of the process.
type oneByOne struct {
	command *cobra.Command
	report  verify.Report
	ended   func(last verify.Cell, sofar verify.Report)
}

// add notes a cell. Where the harness failed, and was not interrupted, the cell says
// so, and what it was played on must not be used again: failed is true.
func (r *oneByOne) add(start time.Time, cell verify.Cell, err error) (failed bool, _ error) {
	if err != nil {
		if r.command.Context().Err() != nil {
			return false, fmt.Errorf("%s under %s: %w", cell.Strategy, cell.Fault, err)
		}
		cell = cell.Failed(err)
		cell.DurationMS = time.Since(start).Milliseconds()
	}
	r.report.Cells = append(r.report.Cells, cell)
	r.ended(cell, r.report)
	return err != nil, nil
}

// explorations plays the explorer's cells on an engine of its own: what only a
// server shows takes the local one.
func (r *oneByOne) explorations(on engine.Config, strategies []verify.Strategy, faults []promise.Condition) (err error) {
	faults = slices.DeleteFunc(slices.Clone(faults), func(f promise.Condition) bool { return !slices.Contains(promise.Explorations(), f) })
	if len(faults) == 0 {
		return nil
	}
	server, err := localserver.DatabaseNamed(on.LocalDB)
	if err != nil {
		return err
	}
	if why := dialect.WhyUnexplored(server.Database); why != "" {
		r.report.LeaveOut("the explorer: " + why)
		return nil
	}
	defer explore.OneProcessor(on.Name == engine.Local)()
	var names []string
	for _, s := range strategies {
		names = append(names, s.Name)
	}
	on.Wait, on.Conns, on.Needs = exploreWait, defaultConns, lockServersOf(names...)
	var e *engine.Engine
	defer func() {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	for _, s := range strategies {
		for _, f := range faults {
			if e == nil {
				if e, err = engine.Open(r.command.Context(), on); err != nil {
					return err
				}
			}
			failed, err := r.exploration(e, s.Name, f)
			if err != nil {
				return err
			}
			if failed {
				_ = e.Close() // it may hold what the failed run has left
				e = nil
			}
		}
	}
	return nil
}

// exploration plays one, where the strategy can be explored here.
func (r *oneByOne) exploration(e *engine.Engine, strategy string, f promise.Condition) (failed bool, _ error) {
	entry, ok := lockstrategy.ByName(strategy)
	if !ok {
		return false, nil // not of the catalogue
	}
	why := entry.Missing(onengine.Deps(e))
	if why == "" {
		why = explore.Ungated(entry)
	}
	if why != "" {
		r.report.LeaveOut("the explorer, " + strategy + ": " + why)
		return false, nil
	}
	promised, possible := entry.Explored(f, e.Database)
	if !possible {
		return false, nil
	}
	if why := entry.NotExplored[f]; why != "" {
		r.report.LeaveOut(strategy + " under " + string(f) + ": " + why)
		return false, nil
	}
	start := time.Now()
	cell, err := verify.Explore(r.command.Context(), e, entry, f, promised)
	return r.add(start, cell, err)
}
