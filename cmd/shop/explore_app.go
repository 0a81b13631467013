package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/program"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/lockstrategy"
)

type appFlags struct {
	file    string
	example bool
	check   bool
	save    string
	tries   int
	allowed string
}

// wipeFlag is the flag that permits a search to delete the data of a remote server.
const wipeFlag = "yes-this-database-may-be-wiped"

// needsApp is the error for a flag that works only with --app.
const needsApp = "requires --app FILE"

func (a *appFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&a.file, "app", "", "`file` that describes your program; see shop explore --app-example")
	a.registerSearch(flags)
}

// registerSearch adds the flags of a program's search, except its file.
func (a *appFlags) registerSearch(flags *pflag.FlagSet) {
	flags.IntVar(&a.tries, "tries", target.DefaultTries, "maximum failed retries in a row before another buyer must run")
	flags.StringVar(&a.allowed, wipeFlag, "", "`host:port` of a remote server that the search can reset")
}

func (a *appFlags) registerExplore(c *cobra.Command) {
	addFlags(c, underProgram, func(flags *pflag.FlagSet) {
		a.register(flags)
		flags.BoolVar(&a.example, "app-example", false, "example file for --app, with comments")
		flags.BoolVar(&a.check, "app-check", false, "one run of each buyer and a summary, without a search")
		flags.StringVar(&a.save, "save", "", "`file` for the witness, which --replay can run again")
	})
}

// notForPrograms lists the flags of `shop explore` and `shop verify` that cannot be combined with --app.
var notForPrograms = []string{
	"stock", "units", "parts", "product", "instances", "one-key", "before", "engine", "local-db", "local-redis", "redis-wait", "db", "redis", "redlock", "zookeeper", "etcd",
	"strategy", "fault", "quick", "race", "target", "no-idempotency-keys", "history", "lanes", "lease", "redlock-nodes", "sold-out-check", "admission",
}

func (a *appFlags) command() string { return "shop explore" + a.given() }

// given returns the flags that name the program or change its search, as text for a command.
func (a *appFlags) given() string {
	line := " --app " + trial.ShellWord(a.file)
	if a.allowed != "" {
		line += " --" + wipeFlag + " " + a.allowed
	}
	if a.tries != target.DefaultTries {
		line += fmt.Sprintf(" --tries %d", a.tries)
	}
	return line
}

// load reads the file of --app, and rejects servers on other machines.
func (a *appFlags) load(c *cobra.Command) (*app.App, error) {
	if err := rejectFlags(c, "cannot be combined with --app: the file describes the program's servers and buyers", notForPrograms...); err != nil {
		return nil, err
	}
	p, err := app.Load(a.file)
	if err != nil {
		return nil, err
	}
	return p, p.Guard(a.allowed)
}

func (o *exploreOptions) runApp(c *cobra.Command) (err error) {
	p, err := o.app.load(c)
	if err != nil {
		return err
	}
	var again *program.Replay // nil without --replay
	if c.Flags().Changed("replay") {
		if again, err = program.ReadReplay(o.replay); err != nil {
			return err
		}
	}
	if c.Flags().Changed("buyers") {
		if err := p.SetBuyers(o.Buyers); err != nil {
			return err
		}
	} else if again != nil {
		_ = p.SetBuyers(again.Buyers) // the later call of Fits reports a wrong number
	}
	o.Overlap = o.Overlap || again != nil && again.Overlap
	config, err := o.checkApp(c, p)
	if err != nil {
		return err
	}
	if again != nil {
		if !c.Flags().Changed("events") {
			config.Events = again.Events
		}
		if err := again.Fits(config); err != nil {
			return fmt.Errorf("--replay: %w", err)
		}
	}
	if o.app.check && len(p.Guesses) > 0 && o.format != "json" {
		defer fmt.Fprintf(c.OutOrStdout(), "still marked as a guess: %s\n", strings.Join(p.Guesses, ", "))
	}
	ctx := c.Context()
	opened, err := program.Open(ctx, p, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if o.app.check {
		opened.Runner.Watch(pollerWatch)
	}
	seen, err := opened.Runner.Check(ctx)
	if err != nil {
		return err
	}
	if o.app.check {
		if err := o.printCheck(c.OutOrStdout(), seen, p); err != nil {
			return err
		}
	}
	if err := seen.Err(); err != nil || o.app.check {
		return err
	}
	progress := newProgress(c.ErrOrStderr())
	x, err := opened.Explorer(&config, progress.show)
	if err != nil {
		return err
	}
	if again != nil && again.Saved != nil {
		if done, err := o.compare(c, x, again.Saved); done || err != nil {
			progress.clear()
			return err
		}
	} else if again != nil {
		return o.runAgain(c, x)
	}
	return o.searchApp(c, x, config, progress)
}

// pollerWatch is how long --app-check watches the program's commands while no buyer buys.
const pollerWatch = 3 * time.Second

// printCheck prints the commands that each buyer sends when it buys alone.
func (o *exploreOptions) printCheck(out io.Writer, seen target.Check, p *app.App) error {
	if o.format == "json" {
		r := seen.Report(p.Name)
		r.Guesses = p.Guesses
		return report.JSON(out, r)
	}
	seen.Print(out, p.Name)
	return nil
}

func (o *exploreOptions) searchApp(c *cobra.Command, x *explore.Explorer, config explore.Config, progress *progress) error {
	ctx := c.Context()
	r, err := program.Search(ctx, x, config)
	progress.clear()
	if err != nil {
		return err
	}
	if err := o.write(c, r); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := o.save(c, x, r.Witness); err != nil {
		return err
	}
	return o.prove(c, o.exit(r, lockstrategy.LockPromise{}))
}

func (o *exploreOptions) save(c *cobra.Command, x *explore.Explorer, w *explore.Witness) error {
	if o.app.save == "" || w == nil {
		return nil
	}
	if err := x.Save(w, o.app.save); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	fmt.Fprintf(o.notes(c), "saved: %s --replay %s\n", o.app.command(), trial.ShellWord(o.app.save))
	return nil
}

func (o *exploreOptions) checkApp(c *cobra.Command, p *app.App) (config explore.Config, err error) {
	events, err := program.Events(o.events)
	if err != nil {
		return config, err
	}
	if err := o.checkSearch(c, len(p.Buyers), events); err != nil {
		return config, err
	}
	if err := cmp.Or(checkRange("tries", o.app.tries, 1, target.MaxTries), o.checkFiles()); err != nil {
		return config, err
	}
	if err := p.CheckOverlap(); o.Overlap && err != nil {
		return config, err
	}
	config = o.Config
	config.OfStrategy, config.Overlap = explore.OfStrategy{}, false
	config.OfProgram = program.Of(p)
	config.Again, config.Split, config.Reduce, config.Tries = o.app.command(), o.Overlap, !o.Full, o.app.tries
	config.Buyers, config.Events, config.Shared = len(p.Buyers), events, p.Shared != "" || p.Attach != nil
	return config, nil
}

func (o *exploreOptions) checkFiles() error {
	if o.app.save != "" {
		if err := report.Check([]report.File{{Flag: "save", Path: o.app.save}}, nil); err != nil {
			return err
		}
	}
	return o.output.check(map[string]string{"save": o.app.save})
}

// compare runs a saved schedule again. The result `done` reports whether no search needs to follow.
func (o *exploreOptions) compare(c *cobra.Command, x *explore.Explorer, saved *explore.Saved) (done bool, _ error) {
	result, err := x.Again(c.Context(), saved)
	if err != nil {
		return true, err
	}
	if result.Other != nil {
		fmt.Fprintf(o.notes(c), "%s; the search starts again\n", result)
		return false, nil
	}
	fmt.Fprintln(o.notes(c), result)
	prints := result.StillBreaks() || o.format != "text" // otherwise the line above is the whole output
	err = o.writeReplay(c, result.Witness, "A saved schedule, run again.", prints)
	if err == nil && result.StillBreaks() {
		err = &exitError{exitBroken, ""}
	}
	return true, err
}
