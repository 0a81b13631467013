package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/plural"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// Local runs every cell (strategy under one condition) on servers of its own, the explorer's cells first. A
// cell whose test failed says so. An error comes from the servers or from ctx. After an error the report
// contains the completed cells.
func (c Config) Local(ctx context.Context) (Report, error) {
	explored := c.start(engine.Local)
	explored.report.Redis = c.LocalRedis
	if err := explored.explorations(ctx, engine.Config{Name: engine.Local, LocalDB: c.LocalDB, LocalRedis: c.LocalRedis}); err != nil {
		explored.report.Finish()
		return explored.report, err
	}
	c.Faults = slices.DeleteFunc(slices.Clone(c.Faults), func(f promise.Condition) bool { return slices.Contains(promise.Explorations(), f) })
	c.Times, c.Launch = cmp.Or(c.Times, fault.DefaultTimes()), with(c.Launch, c.shopFlags())
	all := plan{Config: c, sofar: explored.report, next: make(chan int)}
	all.leaveOutLacking()
	jobs := all.Config.jobs()
	var idle []string                  // conditions without a cell
	elsewhere := map[string][]string{} // conditions by the flag of shop verify that they need
	for _, f := range c.Faults {
		switch needs := c.needs(f); {
		case needs != "":
			elsewhere[needs] = append(elsewhere[needs], string(f))
		case !slices.ContainsFunc(jobs, func(j job) bool { return j.name == f }):
			idle = append(idle, string(f))
		}
	}
	for _, on := range slices.Sorted(maps.Keys(elsewhere)) {
		all.sofar.LeaveOut(strings.Join(elsewhere[on], ", ") + ": run with " + on)
	}
	if len(idle) > 0 {
		all.sofar.LeaveOut(strings.Join(idle, ", ") + ": the fault affects no server that these strategies use")
	}
	all.sofar.leaveOutRows(all.Strategies, func(name string) bool {
		return slices.ContainsFunc(jobs, func(j job) bool { return j.strategy.Name == name }) || all.sofar.hasRow(name)
	})
	all.jobs = repeated(jobs, c.Repeat)
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

// leaveOutLacking drops the rows of strategies that need a capability which this database lacks.
func (p *plan) leaveOutLacking() {
	server, err := localserver.DatabaseNamed(p.LocalDB)
	if err != nil {
		return // StartServers will report the same error
	}
	lacks := dialect.Lacks(server.Database)
	p.Strategies = slices.DeleteFunc(slices.Clone(p.Strategies), func(s Strategy) bool {
		for _, need := range s.Needs {
			if why := lacks[string(need)]; why != "" {
				p.sofar.LeaveOut(s.Name + ": " + why)
				return true
			}
		}
		return false
	})
}

// A plan contains the cells (one strategy under one condition each) of a run, and their progress.
type plan struct {
	Config
	jobs []job
	next chan int // index of the next job; a lane (a set of servers) takes it from here
	stop context.CancelFunc

	mu    sync.Mutex
	sofar Report  // the explorer's cells and the skipped conditions; the cells of the plan follow
	cells []*Cell // in the order of jobs; an element is nil until its cell is complete
	done  int
	errs  []error
}

func (p *plan) on(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sofar.Server = server
}

// lane runs jobs on one set of servers until none is left. After a cell whose test failed, lane starts new
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

func (p *plan) ended(i int, cell Cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cells[i] = &cell
	p.done++
	p.Ended(cell, p.report())
	p.Progress("%d of %s, %d left", p.done, plural.Count(len(p.jobs), "cell"), len(p.jobs)-p.done)
}

func (p *plan) report() Report {
	r := p.sofar
	r.Cells = append(slices.Clone(r.Cells), merge(p.cells)...)
	r.Finish()
	return r
}

// failed stops all lanes because one of them has ended with an error. The others then end with
// context.Canceled, and this error is not reported.
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

// with returns `launch` with more flags in the command line of each shop.
func with(launch fault.Launch, flags []string) fault.Launch {
	return func(times fault.Times) *exec.Cmd {
		cmd := launch(times)
		cmd.Args = append(cmd.Args, flags...)
		return cmd
	}
}

// HistoryFolder returns the folder for the histories of the cells: the value of --history, or a temporary
// folder. The result `made` reports whether HistoryFolder created it.
func HistoryFolder(history string) (path string, made bool, err error) {
	if history == "" {
		path, err = os.MkdirTemp("", "shop-verify-")
		return path, true, err
	}
	_, err = os.Stat(history)
	made = errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(history, 0o755); err != nil {
		return "", false, fmt.Errorf("--history: %w", err)
	}
	f, err := os.CreateTemp(history, ".verify-")
	if err != nil {
		return "", false, fmt.Errorf("--history %s: cannot create a file there: %w", history, errors.Unwrap(err))
	}
	return history, made, errors.Join(f.Close(), os.Remove(f.Name()))
}
