package verify

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// explorations opens an engine and runs the explorer's cells (strategies under one condition) on it. Some
// violations show only on local servers, not on the embedded engine.
func (r *oneByOne) explorations(ctx context.Context, on engine.Config) (err error) {
	faults := slices.DeleteFunc(slices.Clone(r.Faults), func(f promise.Condition) bool { return !slices.Contains(promise.Explorations(), f) })
	if len(faults) == 0 {
		return nil
	}
	if why := explore.UngatedRedis(on.LocalRedis); why != "" {
		r.report.LeaveOut(why)
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
	for _, s := range r.Strategies {
		names = append(names, s.Name)
	}
	on.Wait, on.Conns, on.Needs = explore.DatabaseWait, r.Conns, lockstrategy.LockServers(names...)
	var e *engine.Engine
	defer func() {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	for _, s := range r.Strategies {
		for _, f := range faults {
			if e == nil {
				if e, err = engine.Open(ctx, on); err != nil {
					return err
				}
			}
			failed, err := r.exploration(ctx, e, s.Name, f)
			if err != nil {
				return err
			}
			if failed {
				_ = e.Close() // closing may fail, since the failed run may have left a lock or a goroutine behind
				e = nil
			}
		}
	}
	return nil
}

// exploration runs one cell if the strategy can be explored on e.
func (r *oneByOne) exploration(ctx context.Context, e *engine.Engine, strategy string, f promise.Condition) (failed bool, _ error) {
	entry, ok := lockstrategy.ByName(strategy)
	if !ok {
		return false, nil // the strategy is not in the catalogue
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
	cell, err := exploreCell(ctx, e, entry, f, promised)
	return r.add(ctx, start, cell, err)
}
