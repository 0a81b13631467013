package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/rush"
	"github.com/oversell/oversell/internal/verdict"
	"github.com/oversell/oversell/internal/verify"
)

// embedded runs the explorer and the two rushes on the embedded engine, where
// there is nothing to kill.
func (o *verifyOptions) embedded(c *cobra.Command, strategies []verify.Strategy, faults []promise.Condition, p *progress) (verify.Report, error) {
	r := &embeddedRun{command: c, report: verify.Report{Engine: engine.Embedded, Started: time.Now()}, ended: o.ended(c, p)}
	err := r.explorations(strategies, faults)
	for _, f := range faults {
		processes := verify.Processes(f)
		switch {
		case err != nil || slices.Contains(promise.Explorations(), f):
		case processes == 0:
			r.report.LeaveOut(string(f) + ": it needs servers that can be killed, --engine local")
		default:
			err = r.rushes(f, processes, strategies)
		}
	}
	if err == nil && len(r.report.Cells) == 0 {
		err = errors.New("nothing of this can run on the embedded engine; use --engine local")
	}
	r.report.Finish()
	return r.report, err
}

// embeddedRun plays cells one after the other: the explorer looks at every goroutine
// of the process.
type embeddedRun struct {
	command *cobra.Command
	report  verify.Report
	ended   func(last verify.Cell, sofar verify.Report)
}

// add notes a cell. Where the harness failed, and was not interrupted, the cell says
// so, and what it was played on must not be used again: failed is true.
func (r *embeddedRun) add(start time.Time, cell verify.Cell, err error) (failed bool, _ error) {
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

// explorations plays the explorer's cells.
func (r *embeddedRun) explorations(strategies []verify.Strategy, faults []promise.Condition) (err error) {
	faults = slices.DeleteFunc(slices.Clone(faults), func(f promise.Condition) bool { return !slices.Contains(promise.Explorations(), f) })
	var e *engine.Engine
	defer func() {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	for _, s := range strategies {
		for _, f := range faults {
			if e == nil {
				if e, err = engine.Open(r.command.Context(), engine.Config{Name: engine.Embedded, Wait: exploreWait, Conns: defaultConns}); err != nil {
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
func (r *embeddedRun) exploration(e *engine.Engine, strategy string, f promise.Condition) (failed bool, _ error) {
	entry, ok := lockstrategy.ByName(strategy)
	if why := entry.Missing(onengine.Deps(e)); !ok || why != "" {
		r.report.LeaveOut(strategy + ": " + why)
		return false, nil
	}
	promised, possible := entry.Explored(f, e.DB.Name())
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

// rushes plays one of the two, on one process or on more.
func (r *embeddedRun) rushes(f promise.Condition, processes int, strategies []verify.Strategy) (err error) {
	crowd := rushOptions{processes: processes, buyers: 200}
	crowd.engines.name, crowd.engines.conns = engine.Embedded, defaultConns
	crowd.shops = shopFlags{settings: lockstrategy.DefaultSettings(), maxInflight: 2_000}
	var bed *testbed
	defer func() {
		if bed != nil {
			err = errors.Join(err, bed.close())
		}
	}()
	for _, s := range strategies {
		if bed == nil {
			if bed, err = crowd.testbed(r.command); err != nil {
				return err
			}
		}
		if why := bed.missing[s.Name]; why != "" {
			r.report.LeaveOut(s.Name + ": " + why)
			continue
		}
		var promised verdict.Verdict
		if entry, ok := lockstrategy.ByName(s.Name); ok {
			promised = entry.Promised(f, bed.database)
		}
		start := time.Now()
		config := verify.RushConfig(bed.urls, bed.target, bed.auditor, s.Name, fault.RushTimes())
		result, err := verify.RunCrowd(r.command.Context(), f, config, bed.restart)
		if err == nil {
			config.BaseURLs, config.Shelf = bed.urls, bed.target // a process may have been restarted
			result, err = rush.Restocks(r.command.Context(), config, result, 1)
		}
		failed, err := r.add(start, verify.RushCell(s.Name, f, promised, engine.Embedded, result, processes), err)
		if err != nil {
			return err
		}
		if failed {
			_ = bed.close()
			bed = nil
		}
	}
	return nil
}
