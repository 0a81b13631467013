package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// exitBudget: the search ended before it was complete.
const exitBudget = exitInconclusive

type exploreOptions struct {
	strategy  string
	buyers    int
	stock     int64
	units     []int64
	parts     int64
	product   string
	events    []string
	maxEvents int
	bound     int
	full      bool
	overlap   bool
	instances string
	oneKey    bool
	before    string
	budget    time.Duration
	schedules int
	format    string
	output    output // its json is the same as --format json
	replay    string
	first     bool

	engines engineFlags
	app     appFlags // of a program that is not ours
}

func exploreCommand() *cobra.Command {
	var o exploreOptions
	c := &cobra.Command{
		Use:   "explore STRATEGY | --app FILE",
		Short: "Run every order of a few buyers' commands; show the shortest that breaks",
		Long: `Run a strategy's own code through every order in which the SQL and Redis
commands of a few buyers can reach the servers, one command at a time, each
order from the same restored state. The first to break is shown as a table, with
a line that runs it again.

With --app the code is a program of your own, in any language, as it is: gates
stand where it looks for MySQL, PostgreSQL and Redis. docs/guides/test-your-shop.md is the
way from your shop to a witness; --app-example prints the file to begin with.

Each buyer is a process of its own, unless --instances shared puts all into one.
docs/design/explorer.md has the method, and what it cannot find.

Exit code: 0 when no order breaks; 1 when one does, or when a buyer deletes the
lock of another and the catalogue says that it never does; 2 when something is missing
or down; 3 when nothing was found and the budget is spent, or none of
the events had anything to strike, or, with --app, when runs were void or there was one order alone; 130 after Ctrl-C.`,
		Example: `  shop explore none
  shop explore redis --events expire
  shop explore setnx --events crash --report witness.md
  shop explore transaction --engine local
  shop explore transaction --engine local --local-db postgres-repeatable-read
  shop explore redlock --events forget --bound 2
  shop explore none --replay v1:none:b2:s1:1*2.2*5.1*3
  shop explore --app-example > oversell.yaml
  shop explore --app oversell.yaml --app-check
  shop explore --app oversell.yaml --events expire --save witness.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 && isReport(args[1]) {
				return fmt.Errorf("explore takes one strategy; to write a file use --report %s", args[1])
			}
			if o.app.file != "" || o.app.example {
				if len(args) > 0 {
					return fmt.Errorf("--app names the program; %q is one word too many", args[0])
				}
				return nil
			}
			if len(args) != 1 {
				return fmt.Errorf("give one strategy; there are %s", strings.Join(lockstrategy.Names(), ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case o.app.example:
				_, err := io.WriteString(c.OutOrStdout(), app.Example())
				return err
			case o.app.file != "":
				return o.runApp(c)
			}
			o.strategy = args[0]
			return o.run(c)
		},
	}
	flags := c.Flags()
	flags.IntVar(&o.buyers, "buyers", 2, "buyers; 2 to 8")
	flags.Int64Var(&o.stock, "stock", 1, "units on sale")
	flags.Int64SliceVar(&o.units, "units", []int64{1}, "units per order, for the buyers in turn: 1,2; each 1 to 8")
	flags.Int64Var(&o.parts, "parts", 0, "rows of product_part among which the stock lies when an order begins, for strategies that divide it; 0: it is in the product's own row")
	flags.StringVar(&o.product, "product", "explored", "what is sold; its records are cleared")
	flags.StringSliceVar(&o.events, "events", nil, "what may happen at any step, once each: "+explore.EventNames()+"; or all")
	flags.IntVar(&o.maxEvents, "max-events", 0, "at most so many of the events in one order; 0 for all of them")
	flags.IntVar(&o.bound, "bound", -1, "at most so many preemptions in one order; -1 for any number; unless it is given, 3 buyers and more have 2")
	flags.BoolVar(&o.full, "full", false, "run each order to its end, also after a state that another has come to (on a server always, but MariaDB and PostgreSQL of --engine local)")
	flags.BoolVar(&o.overlap, "overlap", false, "also let two buyers' commands go to one server at once, in both orders")
	flags.StringVar(&o.instances, "instances", "own", "own: each buyer a process of its own; shared: all in one")
	flags.BoolVar(&o.oneKey, "one-key", false, "one Idempotency-Key for all orders, each from another buyer")
	flags.StringVar(&o.before, "before", "", "check before the strategy: sold-out-check, failing-read (the check's reads fail) or admission")
	flags.BoolVar(&o.first, "first", false, "end at the first order that breaks; it need not be the shortest")
	flags.DurationVar(&o.budget, "budget", time.Minute, "time for the search")
	flags.IntVar(&o.schedules, "max-schedules", 0, "a budget that no machine's speed changes: at most so many runs; 0 for any number")
	flags.StringVar(&o.format, "format", "text", "what is printed: "+formatNames())
	o.output.register(c)
	flags.StringVar(&o.replay, "replay", "", "run exactly this order, and print each step")
	o.engines.register(c)
	o.app.registerExplore(c)
	return c
}

// formatNames are those of --format, for a help text.
func formatNames() string {
	var names []string
	for _, f := range witness.Formats() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

func (o *exploreOptions) run(c *cobra.Command) (err error) {
	config, err := o.check(c)
	if err != nil {
		return err
	}
	if err := o.output.check(nil); err != nil {
		return err
	}
	ctx := c.Context()
	settings := lockstrategy.DefaultSettings()
	settings.Wait = explore.DatabaseWait
	engines, err := o.engines.config(c, settings)
	if err != nil {
		return err
	}
	if server, err := localserver.DatabaseNamed(o.engines.localDB); err == nil && dialect.WhyUnexplored(server.Database) != "" {
		return errors.New("--local-db: " + dialect.WhyUnexplored(server.Database)) // before a server is started
	}
	if !config.Overlap {
		defer explore.OneProcessor(engines.Name == engine.Local)()
	}
	engines.Needs = lockServersOf(o.strategy)
	if config.Engine, err = engine.Open(ctx, engines); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, config.Engine.Close()) }()
	progress := newProgress(c.ErrOrStderr())
	config.Progress = func(explored, violations int) {
		progress.show("%s: %d schedules, %d violations", o.strategy, explored, violations)
	}
	x, err := explore.New(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if c.Flags().Changed("replay") {
		return o.runAgain(ctx, c.OutOrStdout(), x)
	}
	result, err := x.Search(ctx)
	progress.clear()
	if err != nil && ctx.Err() == nil {
		return err
	}
	report := explore.NewReport(config, result)
	if err := o.write(c, report); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // what there is was printed
	}
	return o.exit(report, config.Strategy.Lock)
}

// exit is the command's exit code: a break first, then a search that was no proof.
func (o *exploreOptions) exit(r explore.Report, lock lockstrategy.LockPromise) error {
	switch {
	case r.Violations > 0:
		return &exitError{exitBroken, ""}
	case r.Foreign > 0 && !lock.FreesAnothers:
		return &exitError{exitBroken, o.strategy + ": a buyer deletes the lock of another, and the catalogue promises that only its holder frees it"}
	case !r.Complete:
		return &exitError{exitBudget, fmt.Sprintf("%s: nothing was found, but the search is incomplete; raise --budget, --max-schedules or --bound", o.strategy)}
	case r.Empty():
		return &exitError{exitInconclusive, fmt.Sprintf("%s: the result proves nothing: the events %s could not happen at any step; without --events every schedule is explored", o.strategy, strings.Join(o.events, ", "))}
	}
	return nil
}

// check reads the flags before anything is opened.
func (o *exploreOptions) check(c *cobra.Command) (config explore.Config, err error) {
	name := lockstrategy.Resolve(o.strategy)
	entry, ok := lockstrategy.ByName(name)
	if !ok || o.strategy == "" { // "" is none in a URL, and here a slip
		return config, fmt.Errorf("strategy %q is not known; there are %s", o.strategy, strings.Join(lockstrategy.Names(), ", "))
	}
	events, err := explore.ParseEvents(o.events)
	if err != nil {
		return config, fmt.Errorf("--events: %w", err)
	}
	if err := o.checkSearch(c, o.buyers, events); err != nil {
		return config, err
	}
	switch {
	case o.app.check || o.app.save != "" || o.app.allowed != "" || c.Flags().Changed("tries"):
		return config, errors.New("--app-check, --save, --tries and --" + wipeFlag + " are for a program of your own; give --app FILE")
	case c.Flags().Changed("before") && o.before == "":
		return config, errors.New("--before is empty; give sold-out-check, failing-read or admission, or leave it out")
	case o.instances != "own" && o.instances != "shared":
		return config, fmt.Errorf("--instances is %q; there are own and shared", o.instances)
	}
	if err := product.CheckName(o.product); err != nil {
		return config, fmt.Errorf("--product %w", err)
	}
	config = explore.Config{
		Strategy: entry, Buyers: o.buyers, Stock: o.stock, Units: o.units, Parts: o.parts, Product: o.product, Events: events, MaxEvents: o.maxEvents, Bound: o.bound,
		Full: o.full, Overlap: o.overlap, Shared: o.instances == "shared", OneKey: o.oneKey, Before: explore.Front(o.before), Budget: o.budget, Schedules: o.schedules, First: o.first,
	}
	// Not where it says "N of N", nor where a server's own choices count.
	config.Symmetry = !entry.KeyDecides && !config.Units.Mixed() && !o.overlap && (o.first || o.buyers > 2 && o.bound >= 0)
	if !c.Flags().Changed("replay") {
		return config, config.Check()
	}
	s, err := explore.ParseSchedule(o.replay)
	if err != nil {
		return config, fmt.Errorf("--replay: %w", err)
	}
	if s.Strategy != name {
		return config, fmt.Errorf("--replay is of the strategy %q, not of %s", s.Strategy, name)
	}
	if err := o.agrees(c, s); err != nil {
		return config, err
	}
	// The line says the rest.
	config.Buyers, config.Stock, config.Units, config.Parts = s.Buyers, s.Stock, s.Units, s.Parts
	config.Shared, config.OneKey, config.Events = s.Shared, s.OneKey, explore.Events(s.Shared)
	config.MaxEvents, config.Full, config.Overlap = 0, false, s.Concurrent()
	return config, config.Check()
}

// agrees refuses a flag that contradicts the replay string: the string has these values already.
func (o *exploreOptions) agrees(c *cobra.Command, s explore.Schedule) error {
	for _, f := range []struct {
		name string
		same bool
	}{
		{"buyers", o.buyers == s.Buyers},
		{"stock", o.stock == s.Stock},
		{"units", explore.Units(o.units).String() == s.Units.String()},
		{"parts", o.parts == s.Parts},
		{"instances", (o.instances == "shared") == s.Shared},
		{"one-key", o.oneKey == s.OneKey},
	} {
		if flag := c.Flags().Lookup(f.name); flag.Changed && !f.same {
			return fmt.Errorf("--%s is %s, and the replay string has another value; leave the flag out", f.name, strings.Trim(flag.Value.String(), "[]"))
		}
	}
	return nil
}

// checkSearch reads the flags of any search, and sets what follows from others.
func (o *exploreOptions) checkSearch(c *cobra.Command, buyers int, events []explore.Event) error {
	if o.output.json {
		o.format = "json"
	}
	if _, known := witness.FormatNamed(o.format); !known {
		return fmt.Errorf("--format is %q; there are %s", o.format, formatNames())
	}
	switch {
	case o.budget <= 0:
		return fmt.Errorf("--budget is %s; give some time", o.budget)
	case o.schedules < 0:
		return fmt.Errorf("--max-schedules is %d; give 1 or more, or 0 for any number", o.schedules)
	case o.maxEvents < 0:
		return fmt.Errorf("--max-events is %d; give 1 or more, or 0 for all", o.maxEvents)
	case o.maxEvents > 0 && len(events) == 0:
		return errors.New("--max-events is for --events, and there are none")
	case o.bound < -1:
		return fmt.Errorf("--bound is %d; give 0 or more, or -1 for none", o.bound)
	}
	if buyers > 2 && !c.Flags().Changed("bound") {
		o.bound = 2
	}
	return nil
}
