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

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// defaultBudget is the default of --budget for `shop explore` and `shop ci`.
const defaultBudget = time.Minute

type exploreOptions struct {
	explore.Config // from the flags; check and checkApp set the other fields
	strategy       string
	events         []string
	instances      string
	format         string
	output         output // its --json means --format json
	replay         string
	verbose        bool

	engines engineFlags
	app     appFlags
}

func exploreCommand() *cobra.Command {
	var o exploreOptions
	c := &cobra.Command{
		Use:   "explore STRATEGY | --app FILE",
		Short: "Run every interleaving of a few buyers and show the shortest violation",
		Long: `Run a strategy, or your own program with --app, through every interleaving of a few buyers' SQL and
Redis commands. The shortest schedule with a violation is shown as a table, with a replay string.
--app takes a file that describes a program in any language (Linux); --app-example prints such a file.

Exit codes: 0 no schedule has a violation, 1 a violation or a buyer that released another's lock, 2 error,
3 the search was incomplete or proved nothing, 130 interrupted.`,
		Example: `  shop explore redis --events expire
  shop explore --app oversell.yaml --report witness.html`,
		ValidArgsFunction: completeFirst(lockstrategy.Names),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 && isReport(args[1]) {
				return fmt.Errorf("explore takes one strategy; to write a file use --report %s", args[1])
			}
			if o.app.file != "" || o.app.example {
				if len(args) > 0 {
					return fmt.Errorf("explore takes a strategy or --app, not both (got %q)", args[0])
				}
				return nil
			}
			if len(args) != 1 {
				return fmt.Errorf("explore needs one strategy (got %d) or --app FILE; list the strategies with: shop strategies", len(args))
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
	o.registerSearch(flags)
	flags.Int64Var(&o.Stock, "stock", 1, "units on sale")
	flags.Int64SliceVar((*[]int64)(&o.Units), "units", []int64{1}, "`units` per order, each 1 to 8; with 1,2: by turns")
	flags.Int64Var(&o.Parts, "parts", 0, "number of rows of product_part that share the initial stock; 0: none")
	flags.StringVar(&o.Product, "product", "explored", "`name` of the product; each run deletes its records")
	flags.BoolVar(&o.Overlap, "overlap", false, "also two buyers' commands at once inside one server")
	flags.StringVar(&o.instances, "instances", "own", "own: one process per buyer; shared: one process for all")
	flags.BoolVar(&o.OneKey, "one-key", false, "one Idempotency-Key for the orders of all buyers")
	flags.StringVar((*string)(&o.Before), "before", "", "`step` of the shop before the strategy: "+strings.Join(texts(own.Fronts()), ", "))
	flags.DurationVar(&o.Budget, "budget", defaultBudget, "time for the search")
	flags.StringVar(&o.format, "format", "text", "printed format: "+strings.Join(witness.FormatNames(), ", "))
	flags.BoolVar(&o.verbose, "verbose", false, "every command of the witness, in full")
	o.output.register(c)
	flags.StringVar(&o.replay, "replay", "", "replay `string`, or file of --save, to run again")
	o.engines.register(c)
	o.app.registerExplore(c)
	setHelp(c, "docs/guides/test-your-shop.md", "events", "buyers", "app", "replay", "report")
	return c
}

// registerSearch adds the flags that every search has, of a strategy or of a program.
func (o *exploreOptions) registerSearch(flags *pflag.FlagSet) {
	flags.IntVar(&o.Buyers, "buyers", 2, "number of buyers, 2 to 8")
	flags.StringSliceVar(&o.events, "events", nil, "`events`: "+explore.EventNames()+", or all")
	flags.IntVar(&o.MaxEvents, "max-events", 0, "maximum events per schedule; 0: all")
	flags.IntVar(&o.Bound, "bound", -1, "maximum preemptions per schedule; -1: unlimited")
	showDefault(flags, "bound", "-1; with 3 or more buyers: 2")
	flags.BoolVar(&o.Full, "full", false, "run every schedule to its end, without state merging")
	flags.BoolVar(&o.First, "first", false, "end at the first violation, not necessarily the shortest")
	flags.IntVar(&o.Schedules, "max-schedules", 0, "maximum schedules; 0: unlimited")
}

func (o *exploreOptions) run(c *cobra.Command) (err error) {
	config, err := o.check(c)
	if err != nil {
		return err
	}
	ctx := c.Context()
	settings := lockstrategy.DefaultSettings()
	settings.Wait = explore.DatabaseWait
	engines, err := o.engines.config(c, settings)
	if err != nil {
		return err
	}
	if server, err := localserver.DatabaseNamed(o.engines.LocalDB); err == nil && dialect.WhyUnexplored(server.Database) != "" {
		return errors.New("--local-db: " + dialect.WhyUnexplored(server.Database))
	}
	if !config.Overlap {
		defer explore.OneProcessor(engines.Name == engine.Local)()
	}
	engines.Needs = lockstrategy.LockServers(o.strategy)
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
		return o.runAgain(c, x)
	}
	result, err := x.Search(ctx)
	progress.clear()
	if err != nil && ctx.Err() == nil {
		return err
	}
	found := explore.NewReport(config, result)
	if err := o.write(c, found); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return o.prove(c, o.exit(found, config.Strategy.Lock))
}

// prove prints a link to the documentation page about the proof that a search without a violation gives.
func (o *exploreOptions) prove(c *cobra.Command, err error) error {
	if err == nil && o.format == "text" && o.output.printsText() {
		_, err = fmt.Fprintln(c.OutOrStdout(), "what exit code 0 proves: "+report.Proof("explore"))
	}
	return err
}

// exit returns an error with the exit code. A violation takes precedence over a search that proved nothing.
// The parameter `lock` is the promise of the strategy's lock. For a program, it is zero.
func (o *exploreOptions) exit(r explore.Report, lock lockstrategy.LockPromise) error {
	switch {
	case r.Violations > 0:
		return &exitError{exitBroken, ""}
	case r.Foreign > 0 && !lock.FreesAnothers:
		return &exitError{exitBroken, o.strategy + ": a buyer released another holder's lock, which the catalogue rules out"}
	}
	if why := findings.Unproven(r); why != "" {
		return &exitError{exitInconclusive, why}
	}
	return nil
}

// check reads the flags before anything is opened.
func (o *exploreOptions) check(c *cobra.Command) (config explore.Config, err error) {
	name := lockstrategy.Resolve(o.strategy)
	entry, ok := lockstrategy.ByName(name)
	if !ok || o.strategy == "" { // Resolve accepts "", which means no lock in a URL
		return config, unknownStrategy(o.strategy)
	}
	events, err := explore.ParseEvents(o.events)
	if err != nil {
		return config, fmt.Errorf("--events: %w", err)
	}
	if err := o.checkSearch(c, o.Buyers, events); err != nil {
		return config, err
	}
	if err := cmp.Or(rejectFlags(c, needsApp, "app-check", "save", "tries", wipeFlag), checkChoice("instances", o.instances, "own", "shared")); err != nil {
		return config, err
	}
	if c.Flags().Changed("before") && o.Before == "" {
		return config, fmt.Errorf("--before needs a check; choose from: %s", strings.Join(texts(own.Fronts()), ", "))
	}
	if err := product.CheckName(o.Product); err != nil {
		return config, fmt.Errorf("--product %w", err)
	}
	config = o.Config
	config.Strategy, config.Events, config.Shared = entry, events, o.instances == "shared"
	// Symmetry reduction (buyers that have not started are interchangeable) would lower the number of
	// schedules that a complete search prints. With --overlap, a server's own choices are not symmetric.
	config.Symmetry = !entry.KeyDecides && !config.Units.Mixed() && !o.Overlap && (o.First || o.Buyers > 2 && o.Bound >= 0)
	if !c.Flags().Changed("replay") {
		return config, config.Check()
	}
	s, err := explore.ParseSchedule(o.replay)
	if err != nil {
		return config, fmt.Errorf("--replay: %w", err)
	}
	if s.Strategy != name {
		return config, fmt.Errorf("--replay is a string for strategy %s, not for %s; name that strategy instead", s.Strategy, name)
	}
	if err := o.agrees(c, s); err != nil {
		return config, err
	}
	// The replay string sets the values without a flag.
	config.Buyers, config.Stock, config.Units, config.Parts = s.Buyers, s.Stock, s.Units, s.Parts
	config.Shared, config.OneKey, config.Events = s.Shared, s.OneKey, explore.Events(s.Shared)
	config.MaxEvents, config.Full, config.Overlap = 0, false, s.Concurrent()
	return config, config.Check()
}

// agrees rejects a flag that contradicts the replay string.
func (o *exploreOptions) agrees(c *cobra.Command, s explore.Schedule) error {
	for _, f := range []struct {
		name string
		same bool
	}{
		{"buyers", o.Buyers == s.Buyers},
		{"stock", o.Stock == s.Stock},
		{"units", o.Units.String() == s.Units.String()},
		{"parts", o.Parts == s.Parts},
		{"instances", (o.instances == "shared") == s.Shared},
		{"one-key", o.OneKey == s.OneKey},
	} {
		if flag := c.Flags().Lookup(f.name); flag.Changed && !f.same {
			return fmt.Errorf("--%s %s contradicts the replay string; leave out the flag", f.name, strings.Trim(flag.Value.String(), "[]"))
		}
	}
	return nil
}

// checkSearch checks the flags of every search, and sets the values that depend on other flags.
func (o *exploreOptions) checkSearch(c *cobra.Command, buyers int, events []explore.Event) error {
	if o.output.json {
		o.format = "json"
	}
	if err := checkChoice("format", o.format, witness.FormatNames()...); err != nil {
		return err
	}
	switch {
	case o.Budget <= 0:
		return fmt.Errorf("--budget must be more than 0s (got %s)", o.Budget)
	case o.Schedules < 0:
		return fmt.Errorf("--max-schedules must be 1 or more, or 0 for unlimited (got %d)", o.Schedules)
	case o.MaxEvents < 0:
		return fmt.Errorf("--max-events must be 1 or more, or 0 for all (got %d)", o.MaxEvents)
	case o.MaxEvents > 0 && len(events) == 0:
		return errors.New("--max-events requires --events")
	case o.Bound < -1:
		return fmt.Errorf("--bound must be 0 or more, or -1 for unlimited (got %d)", o.Bound)
	}
	if buyers > 2 && !c.Flags().Changed("bound") {
		o.Bound = 2
	}
	return nil
}
