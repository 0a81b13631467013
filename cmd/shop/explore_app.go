package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/foreign"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/report"
)

// appFlags are those of a program that is not ours.
type appFlags struct {
	file    string
	example bool
	check   bool
	save    string
	allowed string
}

// wipeFlag names the server whose data may go.
const wipeFlag = "yes-this-database-may-be-wiped"

func (a *appFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&a.file, "app", "", "a `file` that describes a program in any language, as shop explore --app-example prints one")
	flags.StringVar(&a.allowed, wipeFlag, "", "with --app: the `host:port` of a server that is not on this machine and may be reset again and again")
}

func (a *appFlags) registerExplore(c *cobra.Command) {
	a.register(c)
	flags := c.Flags()
	flags.BoolVar(&a.example, "app-example", false, "print such a file, with comments")
	flags.BoolVar(&a.check, "app-check", false, "with --app: start everything, run each buyer once alone, and say what was seen")
	flags.StringVar(&a.save, "save", "", "with --app: a `file` for the witness; --replay FILE runs it again after a change of the program")
}

// notForPrograms are flags of explore and of verify that say nothing of a program.
var notForPrograms = []string{
	"stock", "units", "product", "overlap", "instances", "engine", "local-db", "local-redis", "redis-wait", "db", "redis", "redlock", "zookeeper", "etcd",
	"strategy", "fault", "quick", "race", "target", "no-idempotency-keys", "history", "lanes",
}

// load reads the file, and refuses servers that are not on this machine.
func (a *appFlags) load(c *cobra.Command) (*app.App, error) {
	for _, name := range notForPrograms {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			return nil, fmt.Errorf("--%s says nothing of a program; %s has its servers and its buyers", name, a.file)
		}
	}
	p, err := app.Load(a.file)
	if err != nil {
		return nil, err
	}
	return p, p.Guard(a.allowed)
}

// A program is one that runs, with gates around it.
type program struct {
	app     *app.App
	servers *app.Servers
	runner  *foreign.Runner
}

// openProgram starts the servers and the program.
func openProgram(ctx context.Context, p *app.App, events []schedule.Event) (_ *program, err error) {
	o := &program{app: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	if o.servers, err = app.Open(ctx, p); err != nil {
		return nil, err
	}
	o.runner, err = foreign.New(ctx, foreign.Spec{App: p, Servers: o.servers, Events: events})
	return o, err
}

// Close ends the program, then its servers.
func (p *program) Close() (err error) {
	if p.runner != nil {
		err = p.runner.Close()
	}
	if p.servers != nil {
		err = errors.Join(err, p.servers.Close())
	}
	return err
}

// runApp is explore of a program.
func (o *exploreOptions) runApp(c *cobra.Command) (err error) {
	p, err := o.app.load(c)
	if err != nil {
		return err
	}
	if c.Flags().Changed("buyers") {
		if err := p.SetBuyers(o.buyers); err != nil {
			return err
		}
	}
	config, err := o.checkApp(c, p)
	if err != nil {
		return err
	}
	if err := o.output.check(nil); err != nil {
		return err
	}
	saved, err := o.saved(c, p)
	if err != nil {
		return err
	}
	ctx := c.Context()
	opened, err := openProgram(ctx, p, config.Events)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	seen, err := opened.runner.Check(ctx)
	if err != nil {
		return err
	}
	if o.app.check {
		printCheck(c.OutOrStdout(), p, seen)
	}
	if err := seen.Err(); err != nil || o.app.check {
		return err
	}
	progress := newProgress(c.ErrOrStderr())
	x, err := opened.explorer(&config, progress)
	if err != nil {
		return err
	}
	if saved != nil {
		if done, err := o.compare(ctx, c.OutOrStdout(), x, saved); done || err != nil {
			progress.clear()
			return err
		}
	} else if o.replay != "" {
		return o.runAgain(ctx, c.OutOrStdout(), x)
	}
	return o.searchApp(c, x, config, progress)
}

// explorer is what searches the program's orders. It completes the config.
func (p *program) explorer(config *explore.Config, progress *progress) (*explore.Explorer, error) {
	config.Servers = p.runner.Servers()
	config.Progress = func(explored, violations int) {
		progress.show("%s: %d orders, %d violations", p.app.Name, explored, violations)
	}
	return explore.NewOn(*config, p.runner, nil)
}

// found runs the search. Without an error, ctx may have ended it.
func found(ctx context.Context, x *explore.Explorer, config explore.Config, progress *progress) (explore.Report, error) {
	result, err := x.Search(ctx)
	progress.clear()
	if err != nil && ctx.Err() == nil {
		return explore.Report{}, err
	}
	return explore.NewReport(config, result), nil
}

// searchApp runs the search and prints what it found.
func (o *exploreOptions) searchApp(c *cobra.Command, x *explore.Explorer, config explore.Config, progress *progress) error {
	ctx := c.Context()
	r, err := found(ctx, x, config, progress)
	if err != nil {
		return err
	}
	if err := o.write(c, r); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.app.save != "" && r.Witness != nil {
		if err := x.Save(r.Witness, o.app.save); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
		fmt.Fprintf(c.OutOrStdout(), "saved: %s --replay %s\n", config.Again, o.app.save)
	}
	return o.exitApp(r)
}

// exitApp is the exit code: a break first, then a search that was no proof.
func (o *exploreOptions) exitApp(r explore.Report) error {
	switch {
	case r.Violations > 0:
		return &exitError{exitBroken, ""}
	case r.Void > 0:
		return &exitError{exitInconclusive, fmt.Sprintf("%s: nothing was found, and %s void: what they would have shown is not known; docs/any-language.md has what to do", r.Strategy, explore.Count(r.Void, "run"))}
	case !r.Complete:
		return &exitError{exitBudget, fmt.Sprintf("%s: nothing was found, and not all was explored; give more --budget or --max-schedules, or --bound", r.Strategy)}
	case r.Empty():
		return &exitError{exitInconclusive, fmt.Sprintf("%s: nothing was shown: there is nothing that %s could strike; without --events every order is explored", r.Strategy, strings.Join(o.events, ", "))}
	case r.Explored < 2:
		return &exitError{exitInconclusive, fmt.Sprintf("%s: nothing was shown: there is one order alone, so no two buyers were at the servers at once; --app-check shows what the gates see", r.Strategy)}
	}
	return nil
}

// checkApp reads the flags before anything is started.
func (o *exploreOptions) checkApp(c *cobra.Command, p *app.App) (config explore.Config, err error) {
	events, err := programEvents(o.events)
	if err != nil {
		return config, err
	}
	if err := o.checkSearch(c, len(p.Buyers), events); err != nil {
		return config, err
	}
	config = explore.Config{
		Program: p.Name, Again: "shop explore --app " + o.app.file, Buyers: len(p.Buyers), Events: events,
		MaxEvents: o.maxEvents, Bound: o.bound, Full: o.full, Reduce: !o.full, Shared: p.Shared != "" || p.Attach != nil,
		Budget: o.budget, Schedules: o.schedules, First: o.first,
	}
	return config, nil
}

// programEvents reads --events of a program: a watchdog of its own is not known there.
func programEvents(names []string) ([]explore.Event, error) {
	events, err := explore.ParseEvents(names)
	if err != nil {
		return nil, fmt.Errorf("--events: %w", err)
	}
	all := foreign.EventNames()
	for _, name := range names {
		if name != "all" && !slices.Contains(all, explore.Event(name)) {
			return nil, fmt.Errorf("--events %s: of a program there are %v and all", name, all)
		}
	}
	return slices.DeleteFunc(events, func(e explore.Event) bool { return !slices.Contains(all, e) }), nil
}

// saved reads what --save has written, where --replay names a file.
func (o *exploreOptions) saved(c *cobra.Command, p *app.App) (*explore.Saved, error) {
	if !c.Flags().Changed("replay") {
		return nil, nil
	}
	if _, err := explore.ParseSchedule(o.replay); err == nil {
		return nil, nil
	}
	if _, err := os.Stat(o.replay); err != nil {
		return nil, fmt.Errorf("--replay %s is no replay line and no file that --save has written", o.replay)
	}
	return explore.LoadSaved(o.replay)
}

// compare runs a saved order again. done: it has said all.
func (o *exploreOptions) compare(ctx context.Context, out io.Writer, x *explore.Explorer, saved *explore.Saved) (done bool, _ error) {
	result, err := x.Again(ctx, saved)
	if err != nil {
		return true, err
	}
	switch {
	case result.Other != nil:
		fmt.Fprintf(out, "%s; the search is run anew\n", result)
		return false, nil
	case result.StillBreaks():
		fmt.Fprintln(out, result)
		d, err := o.replayed(result.Witness)
		if err != nil {
			return true, err
		}
		page := witness.Document{Title: "shop explore --app " + filepath.Base(o.app.file), Summary: "A saved order, run again.", Buyers: len(result.Witness.Outcomes), Broken: witness.Found{Witness: result.Witness}, Data: result.Witness}
		if err := firstOf(report.Save(o.output.files, d, out), o.print(out, page)); err != nil {
			return true, err
		}
		return true, &exitError{exitBroken, ""}
	}
	fmt.Fprintln(out, result)
	return true, nil
}

// printCheck is what --app-check says.
func printCheck(out io.Writer, p *app.App, seen foreign.Check) {
	fmt.Fprintf(out, "%s on %s\n", p.Name, seen.Servers)
	for _, a := range seen.Buyers {
		fmt.Fprintf(out, "\nbuyer %d alone: %s -> %s (%.0f ms with every command held once)\n", a.Buyer, a.Request, orNothing(a.Answer), float64(a.Took.Microseconds())/1000)
		for n, s := range a.Commands {
			fmt.Fprintf(out, "%4d  %-8s  %s -> %s\n", n+1, s.Server, s.Text, s.Result)
		}
		if len(a.Passed) > 0 {
			fmt.Fprintf(out, "      passed without a stop: %s\n", strings.Join(a.Passed, "; "))
		}
		if a.Why == "" {
			what := "no sale"
			if a.Sold {
				what = "a sale"
			}
			fmt.Fprintf(out, "      told as %s; every `never` returns no row\n", what)
		}
	}
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
