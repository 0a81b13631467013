// Package verify judges strategies under faults. A cell is one strategy under one fault, with the
// promised verdict, the observed verdict, and the evidence.
//
//	strategy x fault -> internal/fault injects it into a testbed -> stock and records, answers, history -> verdict
//
// Speed does not affect a verdict. The time until another buyer could buy is reported next to it.
package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A Strategy is a row of the matrix.
type Strategy struct {
	fault.Subject
	// Promised returns the promise, or "" if there is none.
	Promised func(promise.Condition) verdict.Verdict
	// NoPromise says why there is no promise, or returns "". It may be nil.
	NoPromise func(promise.Condition) string
	// Lock returns the promises of the lock itself. nil: none.
	Lock func(promise.Condition) LockRules
}

// FromCatalogue returns the row of an entry, for a database named as in engine.Engine.Database and
// a Redis named as in engine.Engine.Topology.
func FromCatalogue(e lockstrategy.Entry, database, redis string) Strategy {
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

// Config is one run.
type Config struct {
	Strategies []Strategy
	Faults     []promise.Condition
	Launch     fault.Launch // starts a shop with failpoints
	Times      fault.Times
	History    string                                       // folder of the cells' histories; "" for none
	LocalDB    string                                       // database server, of localserver.DatabaseServers; "" is the default
	LocalRedis string                                       // Redis topology, of localserver.RedisServers; "" is single
	Redlock    int                                          // number of Redlock nodes
	ShopFlags  []string                                     // flags that Launch adds to each shop, for the replay command
	RedisWait  int                                          // number of replicas that the shops' locks wait for, as set in Launch
	Lanes      int                                          // concurrent lanes, each with servers of its own
	Before     Report                                       // the earlier cells; the cells of this run follow
	Repeat     int                                          // number of plays of each cell; a whole run ends before the next begins; 0 means 1
	Progress   func(done, all int, last Cell, sofar Report) // called as each cell ends, one call at a time
}

// Run plays every cell. A cell that could not be judged says so. An error comes from the servers or
// from ctx; the report then has the completed cells.
func Run(ctx context.Context, c Config) (Report, error) {
	c.leaveOutLacking()
	jobs := c.jobs()
	var idle []string                  // columns without a cell
	elsewhere := map[string][]string{} // by the flag that they need
	for _, f := range c.Faults {
		switch needs := c.needs(f); {
		case needs != "":
			elsewhere[needs] = append(elsewhere[needs], string(f))
		case !slices.ContainsFunc(jobs, func(j job) bool { return j.name == f }):
			idle = append(idle, string(f))
		}
	}
	for _, on := range slices.Sorted(maps.Keys(elsewhere)) {
		c.Before.LeaveOut(strings.Join(elsewhere[on], ", ") + ": run with " + on)
	}
	if len(idle) > 0 {
		c.Before.LeaveOut(strings.Join(idle, ", ") + ": the fault affects no server that these strategies use")
	}
	all := plan{Config: c, jobs: repeated(jobs, c.Repeat), next: make(chan int)}
	if len(all.jobs) == 0 {
		return all.report(), nil
	}
	all.cells = make([]*Cell, len(all.jobs))
	ctx, all.stop = context.WithCancel(ctx)
	defer all.stop()
	var lanes sync.WaitGroup
	for range max(1, min(c.Lanes, len(all.jobs))) {
		lanes.Go(func() { all.failed(all.lane(ctx)) })
	}
	for i := range all.jobs {
		select {
		case all.next <- i:
		case <-ctx.Done():
		}
	}
	close(all.next)
	lanes.Wait()
	return all.report(), errors.Join(all.errs...)
}

// leaveOutLacking drops the rows of strategies that this database does not support.
func (c *Config) leaveOutLacking() {
	server, err := localserver.DatabaseNamed(c.LocalDB)
	if err != nil {
		return // StartServers will report the error
	}
	lacks := dialect.Lacks(server.Database)
	c.Strategies = slices.DeleteFunc(slices.Clone(c.Strategies), func(s Strategy) bool {
		for _, need := range s.Needs {
			if why := lacks[string(need)]; why != "" {
				c.Before.LeaveOut(s.Name + ": " + why)
				return true
			}
		}
		return false
	})
}

// plan is the cells of a run and their progress.
type plan struct {
	Config
	jobs []job
	next chan int // index of the job that a lane takes next
	stop context.CancelFunc

	mu    sync.Mutex
	cells []*Cell // in the order of jobs; nil until played
	done  int
	errs  []error
}

// on records the database's name.
func (p *plan) on(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Before.Server = server
}

// lane plays jobs until there are none left. After a cell that could not be judged it uses new
// servers, since the old ones may affect the next cell.
func (p *plan) lane(ctx context.Context) error {
	i, more := <-p.next
	work := func(play func(job) (Cell, error)) error {
		for failed := false; more && !failed; i, more = <-p.next {
			cell, err := play(p.jobs[i])
			if err != nil {
				return fmt.Errorf("%s under %s: %w", cell.Strategy, cell.Fault, err)
			}
			p.ended(i, cell)
			failed = cell.HarnessError != ""
		}
		return nil
	}
	for more {
		if err := p.serve(ctx, work); err != nil {
			return err
		}
	}
	return nil
}

// ended records a played cell.
func (p *plan) ended(i int, cell Cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cells[i] = &cell
	p.done++
	p.Progress(p.done, len(p.jobs), cell, p.report())
}

// report returns the report of the played cells.
func (p *plan) report() Report {
	r := p.Before
	r.Cells = append(slices.Clone(r.Cells), merge(p.cells)...)
	r.Finish()
	return r
}

// failed stops all lanes when one ends with an error. The others then end with context.Canceled,
// which is not reported.
func (p *plan) failed(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errs) == 0 || !errors.Is(err, context.Canceled) {
		p.errs = append(p.errs, err)
	}
	p.stop()
}
