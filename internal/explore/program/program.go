// Package program runs a program in any language with its servers. It searches the program's schedules, and sends
// bursts of buyers.
//
//	app.App -> Open -> Explorer, Search -> explore.Report
//	          Verify -> both, and bursts -> findings.Program
package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/nearest"
)

// A Program is a running program under test. Gates hold its commands on the way to the servers.
type Program struct {
	app     *app.App
	servers *app.Servers
	Runner  *target.Runner
}

// Of returns the configuration of a search that the file contains. The search reduces, and has the default Tries.
func Of(p *app.App) explore.OfProgram {
	return explore.OfProgram{
		Program: p.Name, Reduce: true, Tries: target.DefaultTries, Ignore: p.Ignore.Entries, Atomic: p.Atomic, ShortPauses: p.Pauses, AnyOrder: p.AnyOrder,
	}
}

// Open starts the servers and the program. It uses only the fields Events, Tries and Split of c.
func Open(ctx context.Context, p *app.App, c explore.Config) (_ *Program, err error) {
	o := &Program{app: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	if o.servers, err = app.Open(ctx, p); err != nil {
		return nil, err
	}
	o.Runner, err = target.New(ctx, target.Spec{App: p, Servers: o.servers, Events: c.Events, Tries: c.Tries, Overlap: c.Split})
	return o, err
}

// Close ends the program, then its servers.
func (p *Program) Close() (err error) {
	if p.Runner != nil {
		err = p.Runner.Close()
	}
	if p.servers != nil {
		err = errors.Join(err, p.servers.Close())
	}
	return err
}

// Send replaces the buyers' requests: by one request for all, or by as many requests as before. The programs and
// servers keep running. Afterwards, call Check, and do not use an earlier Explorer.
func (p *Program) Send(ctx context.Context, buyers ...app.Request) error {
	next, err := p.Runner.Next(ctx, buyers)
	if err == nil {
		p.Runner = next
	}
	return err
}

// Explorer returns an Explorer of the program's schedules, and completes config.
func (p *Program) Explorer(config *explore.Config, progress func(format string, args ...any)) (*explore.Explorer, error) {
	config.Servers, config.Racing = p.servers.Versions(), p.Runner.Racing()
	config.Progress = func(explored, violations int) {
		progress("%s: %d schedules, %d violations", p.app.Name, explored, violations)
	}
	return explore.NewOn(*config, p.Runner, nil)
}

// Begin first runs each buyer alone as a check. Then it returns an Explorer. If the program cannot be explored, the
// error says why in one line.
func (p *Program) Begin(ctx context.Context, config *explore.Config, progress func(format string, args ...any)) (*explore.Explorer, error) {
	seen, err := p.Runner.Check(ctx)
	if err == nil {
		err = seen.Err()
	}
	if err != nil {
		return nil, err
	}
	return p.Explorer(config, progress)
}

// Unavailable returns an error if this machine cannot explore programs: one line with the reason and the remedy.
func Unavailable() error {
	space, err := process.NewNetwork()
	if err != nil {
		return err
	}
	return space.Close()
}

// Search runs the search. If ctx ends, Search returns a report of the schedules until then, and no error.
func Search(ctx context.Context, x *explore.Explorer, config explore.Config) (explore.Report, error) {
	result, err := x.Search(ctx)
	if err != nil && ctx.Err() == nil {
		return explore.Report{}, err
	}
	return explore.NewReport(config, result), nil
}

// Events parses --events for a program. The event `renew` does not exist for programs.
func Events(names []string) ([]explore.Event, error) {
	all := explore.ProgramEvents()
	for _, name := range names {
		if name != "all" && !slices.Contains(all, explore.Event(name)) {
			return nil, fmt.Errorf("--events: %w", nearest.Unknown("event of a program", name, append(all, "all"), ""))
		}
	}
	events, err := explore.ParseEvents(names)
	if err != nil {
		return nil, fmt.Errorf("--events: %w", err)
	}
	return slices.DeleteFunc(events, func(e explore.Event) bool { return !slices.Contains(all, e) }), nil
}

// Bursts says how many buyers Verify sends at once, and how many times.
type Bursts struct{ Buyers, Rounds int }

// Verify runs the search, and then sends bursts of buyers. With an error it also returns the results so far.
func Verify(ctx context.Context, a *app.App, config explore.Config, bursts Bursts, progress func(format string, args ...any)) (r findings.Program, err error) {
	p, err := Open(ctx, a, config)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	x, err := p.Begin(ctx, &config, progress)
	if err != nil {
		return r, err
	}
	if r.Explore, err = Search(ctx, x, config); err != nil || ctx.Err() != nil {
		return r, err
	}
	r.Rush, err = p.rush(ctx, bursts, progress)
	return r, err
}

// rush sends bursts of buyers. If a burst fails, rush returns the error and the results of the earlier bursts.
func (p *Program) rush(ctx context.Context, bursts Bursts, progress func(format string, args ...any)) (*findings.Rush, error) {
	begun, n, broken := time.Now(), 0, 0
	progress("%s: a rush", p.app.Name)
	crowds, err := p.Runner.Rush(ctx, bursts.Buyers, bursts.Rounds, func(c target.Crowd) {
		if n++; c.Verdict == verdict.Broken {
			broken++
		}
		progress("%s: %d of %d bursts, %d break", p.app.Name, n, bursts.Rounds, broken)
	})
	return findings.NewRush(bursts.Buyers, bursts.Rounds, crowds, time.Since(begun)), err
}
