// Package verify judges: a cell is one strategy under one fault, with the
// verdict that the catalogue promises, the one that was seen, and what was seen.
//
//	strategy x fault -> internal/fault plays the scene -> books, answers, history -> verdict
//
// Timing decides no verdict. How long it took until somebody else could buy is
// written beside it.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/rush"
	"github.com/oversell/oversell/internal/verdict"
)

// A Strategy is a row of the matrix.
type Strategy struct {
	fault.Subject
	// Promised is the catalogue's word, "" where it has none.
	Promised func(promise.Condition) verdict.Verdict
	// NoPromise says why it has none.
	NoPromise map[promise.Condition]string
}

// FromCatalogue makes a row of an entry, on MySQL.
func FromCatalogue(e lockstrategy.Entry) Strategy {
	return Strategy{
		Subject:   fault.Subject{Name: e.Name, Needs: e.Needs},
		Promised:  func(f promise.Condition) verdict.Verdict { return e.Promised(f, "mysql") },
		NoPromise: e.NoPromise,
	}
}

// Config is one run.
type Config struct {
	Strategies []Strategy
	Faults     []promise.Condition
	Launch     fault.Launch // of a shop with failpoints
	Times      fault.Times
	History    string // the folder of the cells' histories; "" for none
	Lanes      int    // cells side by side, each lane on servers of its own
	Repeat     int    // each cell is played so often, one whole run after the other; 0 is 1
	Progress   func(done, all int, last Cell)
}

// job is a cell that is to be played.
type job struct {
	strategy Strategy
	name     promise.Condition
	fault    fault.Fault // zero for a rush

	play, plays int // which of how many; both 0 when there is one
}

// jobs are the cells in the order of the matrix; a fault that a strategy has no
// server for is no cell.
func (c Config) jobs() (all []job) {
	faults := map[promise.Condition]fault.Fault{}
	for _, f := range fault.All() {
		faults[f.Name] = f
	}
	for _, s := range c.Strategies {
		for _, name := range c.Faults {
			if lockstrategy.Strikes(name, s.Needs) {
				all = append(all, job{strategy: s, name: name, fault: faults[name]})
			}
		}
	}
	return all
}

// Run plays every cell. An error is one of the harness; the report then has the
// cells that were done.
func Run(ctx context.Context, c Config) (Report, error) {
	report := Report{Engine: "local", Started: time.Now()}
	jobs := repeated(c.jobs(), c.Repeat)
	if len(jobs) == 0 { // a gate that has looked at nothing must not be green
		return report, fmt.Errorf("none of these strategies uses anything that %s strikes", list(c.Faults))
	}
	cells := make([]*Cell, len(jobs))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		next  = make(chan int)
		lanes sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		done  int
	)
	for range max(1, min(c.Lanes, len(jobs))) {
		lanes.Go(func() {
			err := c.lane(ctx, func(play func(job) (Cell, error)) error {
				for i := range next {
					cell, err := play(jobs[i])
					if err != nil {
						return fmt.Errorf("%s under %s: %w", jobs[i].strategy.Name, jobs[i].name, err)
					}
					mu.Lock()
					cells[i] = &cell
					done++
					c.Progress(done, len(jobs), cell)
					mu.Unlock()
				}
				return nil
			})
			if err != nil {
				mu.Lock()
				if len(errs) == 0 || !errors.Is(err, context.Canceled) { // the other lanes only heard of it
					errs = append(errs, err)
				}
				mu.Unlock()
				cancel()
			}
		})
	}
	for i := range jobs {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	lanes.Wait()
	report.Cells = merge(cells)
	report.Finish()
	return report, errors.Join(errs...)
}

func list(faults []promise.Condition) string {
	var names []string
	for _, f := range faults {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// lane starts servers and two shops, and lets work play cells on them.
func (c Config) lane(ctx context.Context, work func(play func(job) (Cell, error)) error) (err error) {
	var needs []lockstrategy.Need
	for _, s := range c.Strategies {
		needs = append(needs, s.Needs...)
	}
	servers, err := fault.StartServers(ctx, c.Times.Wait, needs)
	defer func() { err = errors.Join(err, servers.Close()) }()
	if err != nil {
		return err
	}
	l := &lane{Config: c, servers: servers}
	defer func() { l.pair.Stop() }()
	return work(func(j job) (Cell, error) { return l.play(ctx, j) })
}

// lane is a set of servers with two shops on it.
type lane struct {
	Config
	servers *fault.Servers
	pair    fault.Pair
	subject string      // what the pair was started for
	times   fault.Times // of the pair
}

// play plays one cell. The shops are new after each fault: what a fault did to
// a pool or a client must not be another cell's.
func (l *lane) play(ctx context.Context, j job) (_ Cell, err error) {
	start := time.Now()
	cell := Cell{
		Strategy: j.strategy.Name, Fault: j.name, Promise: j.strategy.Promised(j.name), NoPromise: j.strategy.NoPromise[j.name],
		Replay: fmt.Sprintf("shop verify --engine local --strategy %s --fault %s", j.strategy.Name, j.name),
	}
	if j.plays > 0 {
		cell.Replay += fmt.Sprintf(" --repeat %d", j.plays)
	}
	times := fault.RushTimes()
	if j.fault.Strike != nil {
		times = l.Times
	}
	if l.times != times || l.subject != j.strategy.Name || j.fault.Strike != nil {
		if err := l.restart(ctx, j.strategy.Subject, times); err != nil {
			return cell, err
		}
	}
	if missing := l.missing(j.strategy); missing != "" {
		cell.Verdict, cell.Reason, cell.Evidence = verdict.Inconclusive, missing, missing
		return cell, nil
	}
	if l.History != "" {
		cell.History = filepath.Join(l.History, j.strategy.Name, j.file())
	}
	log, err := history.NewLog(cell.History)
	if err != nil {
		return cell, err
	}
	l.pair.RecordTo(log)
	if j.fault.Strike == nil {
		err = l.rush(ctx, j, &cell)
	} else {
		err = l.strike(ctx, j, log, &cell)
	}
	l.pair.RecordTo(nil)
	if err := errors.Join(err, log.Close()); err != nil {
		return cell, err
	}
	events := log.Events()
	buys, stock := buysIn(events)
	sales, err := l.servers.Auditor.Sales(ctx, productOf(j))
	if err != nil {
		return cell, err
	}
	if err := cell.linear(settledBy(buys, sales), stock); err != nil {
		return cell, err
	}
	if j.fault.Strike != nil {
		cell.bound(events, l.Times.Allowed(j.strategy.Needs))
	}
	cell.look(events)
	cell.settle()
	cell.DurationMS = time.Since(start).Milliseconds()
	return cell, nil
}

// file is the name of the cell's history.
func (j job) file() string {
	if j.plays == 0 {
		return string(j.name) + ".ndjson"
	}
	return fmt.Sprintf("%s-%03d.ndjson", j.name, j.play+1)
}

// restart starts another pair of shops. A shop asks its servers once when it
// starts and ends when one does not answer in time, which a busy machine's may not:
// it is tried again, since nothing is judged yet.
func (l *lane) restart(ctx context.Context, s fault.Subject, times fault.Times) (err error) {
	for tries := 0; tries == 0 || err != nil && tries < 3 && ctx.Err() == nil; tries++ {
		l.pair.Stop()
		l.pair, l.subject, l.times = fault.Pair{}, s.Name, times
		l.pair, err = l.servers.StartPair(ctx, l.Launch, times, s.Needs)
	}
	return err
}

func (l *lane) missing(s Strategy) string {
	for _, need := range s.Needs {
		if why := l.servers.Absent[string(need)]; why != "" {
			return why
		}
	}
	return ""
}

// productOf a cell is its own.
func productOf(j job) string { return fmt.Sprintf("verify-%s-%s", j.strategy.Name, j.name) }

// rush is a plain one, on one process or on two.
func (l *lane) rush(ctx context.Context, j job, cell *Cell) error {
	urls := []string{l.pair.A.URL}
	if j.name == promise.TwoProcesses {
		urls = append(urls, l.pair.B.URL)
	}
	shelf := rush.Target{BaseURL: urls[0], Client: &http.Client{}}
	config := RushConfig(urls, shelf, l.servers.Auditor, j.strategy.Name, l.times.Wait)
	config.Product = productOf(j)
	result, err := rush.Run(ctx, config)
	if err != nil {
		return err
	}
	cell.rushed(result, len(urls))
	cell.Acknowledged, cell.Lost = result.Sold, result.Lost
	return nil
}

// strike plays a fault and judges what came of it.
func (l *lane) strike(ctx context.Context, j job, log *history.Log, cell *Cell) error {
	bed := &fault.Testbed{
		Subject: j.strategy.Subject, Product: productOf(j), Stock: j.fault.Stock,
		Servers: l.servers, A: l.pair.A, B: l.pair.B, Launch: l.Launch, Log: log, Times: l.Times,
	}
	facts, err := bed.Play(ctx, j.fault)
	l.pair.A = bed.A // a crashed shop has a successor
	if err != nil {
		return err
	}
	books, err := bed.Audit(ctx)
	if err != nil {
		return err
	}
	lost, untold, err := rush.Compare(ctx, l.servers.Auditor, bed.Product, rush.Answers(facts.Answers), books)
	if err != nil {
		return err
	}
	cell.Books = books
	cell.judge(facts, lost, untold)
	return nil
}

// order is the matrix's: rows as in the catalogue, columns as in the list of faults.
func order(cells []Cell) (strategies []string, faults []promise.Condition) {
	for _, c := range cells {
		if !slices.Contains(strategies, c.Strategy) {
			strategies = append(strategies, c.Strategy)
		}
		if !slices.Contains(faults, c.Fault) {
			faults = append(faults, c.Fault)
		}
	}
	all := promise.Columns()
	slices.SortFunc(faults, func(a, b promise.Condition) int { return cmp.Compare(slices.Index(all, a), slices.Index(all, b)) })
	return strategies, faults
}
