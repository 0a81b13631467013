package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/web"
)

// Embedded runs every cell (strategy under one condition) that needs no server to be killed: explorations and
// bursts of buyers, on the embedded engine. After an error it returns the cells that are complete.
func (c Config) Embedded(ctx context.Context) (Report, error) {
	r := c.start(engine.Embedded)
	err := r.explorations(ctx, engine.Config{Name: engine.Embedded})
	for _, f := range c.Faults {
		processes := processesOf(f)
		switch {
		case err != nil || slices.Contains(promise.Explorations(), f):
		case processes == 0:
			r.report.LeaveOut(string(f) + ": it needs servers that can be killed, --engine local")
		default:
			err = r.rushes(ctx, f, processes)
		}
	}
	if err == nil {
		r.report.leaveOutRows(r.Strategies, r.report.hasRow)
	}
	r.report.Finish()
	return r.report, err
}

func (r *oneByOne) rushes(ctx context.Context, f promise.Condition, processes int) (err error) {
	settings := lockstrategy.DefaultSettings()
	crowd := &trial.Crowd{Processes: processes, Buyers: 200, Shops: web.Config{Settings: settings, MaxInflight: 2_000, SoldOutCheck: r.SoldOutCheck, Admission: r.Admission}}
	config := engine.Config{Name: engine.Embedded, Wait: settings.Wait, Lease: settings.LeaseTTL, Conns: r.Conns}
	var bed *trial.Storefront
	defer func() {
		if bed != nil {
			err = errors.Join(err, bed.Close())
		}
	}()
	for _, s := range r.Strategies {
		if bed == nil {
			if bed, err = trial.Open(ctx, crowd, config, "", r.Warn); err != nil {
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
		start, leftBehind := time.Now(), false
		cell, err := verdict.Confirm(func() (Cell, error) {
			config := rushConfig(bed.URLs, bed.Target, bed.Auditor, s.Name, fault.RushTimes())
			config.LetsWait = trial.LetsWait(r.Admission, bed.Database)
			result, err := runCrowd(ctx, f, config, bed.Restart)
			if err == nil {
				config.BaseURLs, config.Shelf = bed.URLs, bed.Target // a process may have been restarted at another address
				if f == promise.Rush || f == promise.TwoProcesses {
					config.Inside = trial.InsideOf(s.Name, bed.Database)
				}
				result, err = rush.Restocks(ctx, config, result, 1)
			}
			leftBehind = result.LeftBehind()
			return rushCell(s.Name, f, promised, engine.Embedded, result, processes), err
		})
		failed, err := r.add(ctx, start, cell, err)
		if err != nil {
			return err
		}
		if failed || leftBehind {
			_ = bed.Close()
			bed = nil
		}
	}
	return nil
}

// oneByOne runs cells one after the other, since the explorer observes all goroutines of the process.
type oneByOne struct {
	Config
	report Report
}

func (c Config) start(engineName string) *oneByOne {
	return &oneByOne{c, Report{Engine: engineName, Command: c.Command, Started: time.Now()}}
}

// add adds a cell. If the test itself failed, and not because of an interruption, the cell says so. Then add
// returns true, and the caller must not use the servers of that cell again.
func (r *oneByOne) add(ctx context.Context, start time.Time, cell Cell, err error) (failed bool, _ error) {
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
