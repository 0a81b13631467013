package main

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/web"
)

// embedded runs the explorer and the two rushes on the embedded engine, where
// there is nothing to kill.
func (o *verifyOptions) embedded(c *cobra.Command, strategies []verify.Strategy, faults []promise.Condition, p *progress) (verify.Report, error) {
	r := &oneByOne{command: c, report: verify.Report{Engine: engine.Embedded, Started: time.Now()}, ended: o.ended(c, p)}
	err := r.explorations(engine.Config{Name: engine.Embedded}, strategies, faults)
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
	r.report.Finish()
	return r.report, err
}

// rushes plays one of the two, on one process or on more.
func (r *oneByOne) rushes(f promise.Condition, processes int, strategies []verify.Strategy) (err error) {
	settings := lockstrategy.DefaultSettings()
	crowd := &trial.Crowd{Processes: processes, Buyers: 200, Shops: web.Config{Settings: settings, MaxInflight: 2_000}}
	config := engine.Config{Name: engine.Embedded, Wait: settings.Wait, Lease: settings.LeaseTTL, Conns: defaultConns}
	var bed *trial.Storefront
	defer func() {
		if bed != nil {
			err = errors.Join(err, bed.Close())
		}
	}()
	for _, s := range strategies {
		if bed == nil {
			if bed, err = trial.Open(r.command.Context(), crowd, config, "", warnTo(r.command.ErrOrStderr())); err != nil {
				return err
			}
		}
		if why := bed.Missing[s.Name]; why != "" {
			r.report.LeaveOut(s.Name + ": " + why)
			continue
		}
		var promised verdict.Verdict
		if entry, ok := lockstrategy.ByName(s.Name); ok {
			promised = entry.Promised(f, bed.Database)
		}
		start := time.Now()
		cell, err := verify.Sure(func() (verify.Cell, error) {
			config := verify.RushConfig(bed.URLs, bed.Target, bed.Auditor, s.Name, fault.RushTimes())
			result, err := verify.RunCrowd(r.command.Context(), f, config, bed.Restart)
			if err == nil {
				config.BaseURLs, config.Shelf = bed.URLs, bed.Target // a process may have been restarted
				result, err = rush.Restocks(r.command.Context(), config, result, 1)
			}
			return verify.RushCell(s.Name, f, promised, engine.Embedded, result, processes), err
		})
		failed, err := r.add(start, cell, err)
		if err != nil {
			return err
		}
		if failed {
			_ = bed.Close()
			bed = nil
		}
	}
	return nil
}
