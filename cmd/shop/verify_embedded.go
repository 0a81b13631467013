package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
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
	report := verify.Report{Engine: engine.Embedded, Started: time.Now()}
	err := o.explorations(c, strategies, faults, &report, p)
	for _, f := range faults {
		processes := map[promise.Condition]int{promise.Rush: 1, promise.TwoProcesses: 2}[f]
		switch {
		case err != nil || slices.Contains(promise.Explorations(), f):
		case processes == 0:
			report.LeaveOut(string(f) + ": it needs servers that can be killed, --engine local")
		default:
			err = o.rushes(c, f, processes, strategies, &report, p)
		}
	}
	if err == nil && len(report.Cells) == 0 {
		err = errors.New("nothing of this can run on the embedded engine; use --engine local")
	}
	report.Finish()
	return report, err
}

// explorations plays the explorer's cells, one after the other: it looks at every
// goroutine of the process.
func (o *verifyOptions) explorations(c *cobra.Command, strategies []verify.Strategy, faults []promise.Condition, report *verify.Report, p *progress) (err error) {
	faults = slices.DeleteFunc(slices.Clone(faults), func(f promise.Condition) bool { return !slices.Contains(promise.Explorations(), f) })
	if len(faults) == 0 {
		return nil
	}
	e, err := engine.Open(c.Context(), engine.Config{Name: engine.Embedded, Wait: exploreWait, Conns: defaultConns})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for _, s := range strategies {
		entry, ok := lockstrategy.ByName(s.Name)
		if why := entry.Missing(onengine.Deps(e)); !ok || why != "" {
			report.LeaveOut(s.Name + ": " + why)
			continue
		}
		for _, f := range faults {
			promised, possible := entry.Explored(f, e.DB.Name())
			switch {
			case !possible:
				continue
			case entry.NotExplored[f] != "":
				report.LeaveOut(s.Name + " under " + string(f) + ": " + entry.NotExplored[f])
				continue
			}
			cell, err := verify.Explore(c.Context(), e, entry, f, promised)
			if err != nil {
				return fmt.Errorf("%s under %s: %w", s.Name, f, err)
			}
			report.Cells = append(report.Cells, cell)
			p.show("%s; last %s under %s: %s", explore.Count(len(report.Cells), "cell"), s.Name, f, cell.Verdict)
		}
	}
	return nil
}

// rushes plays one of the two, on one process or on more.
func (o *verifyOptions) rushes(c *cobra.Command, f promise.Condition, processes int, strategies []verify.Strategy, report *verify.Report, p *progress) (err error) {
	crowd := rushOptions{processes: processes, buyers: 200}
	crowd.engines.name, crowd.engines.conns = engine.Embedded, defaultConns
	crowd.shops = shopFlags{settings: lockstrategy.DefaultSettings(), maxInflight: 2_000}
	bed, err := crowd.testbed(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.close()) }()
	for _, s := range strategies {
		if why := bed.missing[s.Name]; why != "" {
			report.LeaveOut(s.Name + ": " + why)
			continue
		}
		result, err := rush.Run(c.Context(), verify.RushConfig(bed.urls, bed.target, bed.auditor, s.Name, crowd.shops.settings.Wait))
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		var promised verdict.Verdict
		if entry, ok := lockstrategy.ByName(s.Name); ok {
			promised = entry.Promised(f, bed.database)
		}
		report.Cells = append(report.Cells, verify.RushCell(s.Name, f, promised, engine.Embedded, result, processes))
		p.show("%d of %d strategies; last %s under %s: %s", len(report.Cells), len(strategies), s.Name, f, result.Verdict)
	}
	return nil
}
