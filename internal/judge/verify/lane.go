package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// serve starts servers and two shops. It calls `work` with a function that runs cells (strategies under one
// condition).
func (p *plan) serve(ctx context.Context, work func(play func(job) (Cell, error)) error) (err error) {
	c := p.Config
	var needs []lockstrategy.Need
	for _, s := range c.Strategies {
		needs = append(needs, s.Needs...)
	}
	servers, err := fault.StartServers(ctx, c.LocalDB, c.LocalRedis, c.Redlock, c.Times.Wait, needs)
	defer func() { err = errors.Join(err, servers.Close()) }()
	if err != nil {
		return err
	}
	p.on(servers.Database())
	l := &lane{Config: c, servers: servers}
	defer func() { l.pair.Stop() }()
	return work(func(j job) (Cell, error) { return l.play(ctx, j) })
}

// A lane is a set of servers with two shops. Cells run on it one after the other.
type lane struct {
	Config
	servers *fault.Servers
	pair    fault.Pair
	subject string // the strategy for which the pair of shops was started
	needs   []lockstrategy.Need
	times   fault.Times // waits and leases of the two shops
}

// play runs one cell. After each fault it starts new shops, since a fault's effect on a connection pool or a
// client must not reach another cell. An error comes from the servers or from ctx.
func (l *lane) play(ctx context.Context, j job) (_ Cell, err error) {
	start := time.Now()
	cell := Cell{
		Strategy: j.strategy.Name, Fault: j.name, Promise: j.strategy.Promised(j.name), NoPromise: j.strategy.noPromise(j.name),
		Replay: fmt.Sprintf("shop verify%s --strategy %s --fault %s", engine.Flags(engine.Local, l.LocalDB, l.LocalRedis), j.strategy.Name, j.name),
	}
	for _, flag := range l.shopFlags() {
		cell.Replay += " " + flag
	}
	if l.Redlock != engine.RedlockNodes {
		cell.Replay += fmt.Sprintf(" --redlock-nodes %d", l.Redlock)
	}
	if l.Times != fault.DefaultTimes() && j.fault.Inject != nil {
		cell.Replay += " --lease " + l.Times.Lease.String()
	}
	if j.plays > 0 {
		cell.Replay += fmt.Sprintf(" --repeat %d", j.plays)
	}
	times := fault.RushTimes()
	if j.fault.Inject != nil {
		times = l.Times.TimesOf(j.fault, l.LocalRedis)
	}
	if missing := l.missing(j.strategy); missing != "" {
		cell.Verdict, cell.Reason, cell.Evidence = verdict.Inconclusive, missing, missing
		return cell, nil
	}
	if l.History != "" {
		cell.History = filepath.Join(l.History, j.strategy.Name, j.file())
	}
	fresh, plays := cell, 0
	isNew := l.times != times || l.subject != j.strategy.Name || j.fault.Inject != nil
	var notStarted error
	cell, err = verdict.Confirm(func() (Cell, error) {
		plays++
		if notStarted = nil; isNew || plays > 1 {
			notStarted = l.restart(ctx, j.strategy.Subject, times)
		}
		if notStarted != nil {
			failed := fresh.Failed(notStarted)
			failed.disturbance = "the shops did not start"
			return failed, ctx.Err()
		}
		return l.awake(ctx, j, fresh, plays)
	})
	if notStarted != nil {
		return cell, notStarted
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return cell, err
	case errors.As(err, new(*rush.RestockError)):
		cell.Verdict, cell.Reason, cell.Evidence = verdict.Failed, err.Error(), err.Error()
		cell.Settle()
	case err != nil:
		cell = cell.Failed(err)
	default:
		cell.Settle()
	}
	cell.DurationMS = time.Since(start).Milliseconds()
	return cell, nil
}

// awake runs a cell once. The run proves nothing if a time limit ended before the fault while this process
// mostly had no processor.
func (l *lane) awake(ctx context.Context, j job, fresh Cell, play int) (Cell, error) {
	start, alive := time.Now(), pulse.Start()
	defer alive.Stop()
	cell, err := l.once(ctx, j, fresh, play)
	now := time.Now()
	if cell.Disturbed() != "" {
		cell.Reason += "; " + alive.Delays().Describe(start, now)
		cell.Evidence = cell.evidence()
	}
	if starved, is := fresh.starved(err, alive.Delays(), start, now); is {
		return starved, nil
	}
	return cell, err
}

// once runs a cell once, with a history of its own. The run proves nothing if the strategy uses Redis, and
// Redis failed over without a fault.
func (l *lane) once(ctx context.Context, j job, cell Cell, play int) (Cell, error) {
	if folder, file := filepath.Split(cell.History); play > 1 && file != "" {
		cell.History = filepath.Join(folder, fmt.Sprintf("play-%d-%s", play, file))
	}
	if !slices.Contains(j.strategy.Needs, lockstrategy.NeedsRedis) {
		return cell, l.record(ctx, j, &cell)
	}
	failedOver, err := l.servers.Undisturbed(ctx)
	if err != nil {
		return cell, err
	}
	if err := l.record(ctx, j, &cell); err != nil {
		return cell, err
	}
	why, err := failedOver(ctx)
	cell.disturbed(why)
	return cell, err
}

// disturbed makes the cell inconclusive if Redis failed over by itself. `why` describes the failover; "" means
// that there was none. The cell keeps a violation that a forgotten lock cannot cause.
func (c *Cell) disturbed(why string) {
	if why == "" || slices.Contains([]verdict.Verdict{verdict.Lost, verdict.Diverged, verdict.Duplicated}, c.Verdict) {
		return
	}
	c.Verdict, c.Reason, c.disturbance = verdict.Inconclusive, why, why
	c.Evidence = c.evidence()
}

// record runs the cell, records its history, and judges the cell by its result and its history.
func (l *lane) record(ctx context.Context, j job, cell *Cell) error {
	log, err := history.NewLog(cell.History)
	if err != nil {
		return err
	}
	if j.name != promise.Duplicates { // under Duplicates a buyer's name is at two processes at once, which a history cannot distinguish
		l.pair.RecordTo(log)
	}
	if j.fault.Inject == nil {
		err = l.rush(ctx, j, cell)
	} else {
		err = l.strike(ctx, j, log, cell)
	}
	l.pair.RecordTo(nil)
	if err := errors.Join(err, log.Close()); err != nil {
		return err
	}
	events := slices.DeleteFunc(log.Events(), func(e history.Event) bool { return e.Product != "" && e.Product != productOf(j) })
	buys, stock := buysIn(events, productOf(j))
	sales, err := l.servers.Auditor.Sales(ctx, productOf(j))
	if err != nil {
		return err
	}
	if err := cell.linear(linear.Settle(buys, sales), stock); err != nil {
		return err
	}
	if err := errors.Join(l.restock(ctx, j, cell), l.apart(ctx, j, cell)); err != nil {
		return err
	}
	seen := reading{cell, events}
	if j.fault.Inject != nil {
		seen.bound(l.times.Allowed(j.fault, j.strategy.Needs))
	}
	if j.strategy.Lock != nil {
		seen.judgeLock(j.strategy.Lock(j.name), l.times.Lease)
	}
	seen.read()
	return nil
}

// restart starts another pair of shops. On a busy machine restart may fail, since a new shop exits if a server
// does not answer in time.
func (l *lane) restart(ctx context.Context, s fault.Subject, times fault.Times) (err error) {
	l.pair.Stop()
	l.pair, l.subject, l.needs, l.times = fault.Pair{}, s.Name, s.Needs, times
	l.pair, err = l.servers.StartPair(ctx, l.Launch, times, s.Needs)
	return err
}

func (l *lane) missing(s Strategy) string {
	for _, need := range s.Needs {
		if why := l.servers.Absent(need); why != "" {
			return why
		}
	}
	return ""
}

func (l *lane) rush(ctx context.Context, j job, cell *Cell) error {
	urls := []string{l.pair.A.URL(), l.pair.B.URL()}[:processesOf(j.name)]
	shelf := rush.Target{BaseURL: urls[0]}
	config := rushConfig(urls, shelf, l.servers.Auditor, j.strategy.Name, l.times)
	config.Product, config.LetsWait = productOf(j), trial.LetsWait(l.Admission, l.database())
	result, err := runCrowd(ctx, j.name, config, l.crash)
	if err != nil {
		return err
	}
	cell.rushed(result, len(urls))
	cell.Acknowledged, cell.Lost = result.Sold, result.Lost
	return nil
}

func (l *lane) strike(ctx context.Context, j job, log *history.Log, cell *Cell) error {
	bed := &fault.Testbed{
		Subject: j.strategy.Subject, Product: productOf(j), Stock: j.fault.Stock,
		Servers: l.servers, A: l.pair.A, B: l.pair.B, Launch: l.Launch, Log: log, Times: l.times, Confirmed: l.RedisWait > 0,
	}
	facts, err := bed.Play(ctx, j.fault)
	l.pair.A, l.pair.B = bed.A, bed.B // the fault may have replaced a shop
	if err != nil {
		return err
	}
	audited, err := bed.Audit(ctx)
	if err != nil {
		return err
	}
	compared, err := rush.Compare(ctx, l.servers.Auditor, bed.Product, buyers.Answers(facts.Answers), audited)
	if err != nil {
		return err
	}
	cell.Audited = audited
	cell.judge(facts, compared.Lost, compared.Untold)
	return nil
}
