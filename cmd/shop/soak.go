package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/load/soak"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

// soakOptions are the flags of soak.
type soakOptions struct {
	strategies []string
	duration   time.Duration
	wave       time.Duration
	clients    int
	processes  int
	kill       bool
	seed       uint64
	engines    engineFlags
	shops      shopFlags
	output     output

	all          bool // --strategy all
	onePerFamily bool // --strategy is not given
}

func soakCommand() *cobra.Command {
	var o soakOptions
	c := &cobra.Command{
		Use:   "soak",
		Short: "Load the shop for a long time in changing waves, with an audit after each",
		Long: `Load the shop for a long time: steady load, bursts, ramps, restocks in the middle of a sale, and kill -9
of a shop process. An audit of stock and records follows each wave. --seed repeats the same waves.
A metric that rises in every quarter of a process's life while it is idle is reported as growing. This
does not affect the exit code. A process is killed only if its strategy promises to hold under a crash.

Exit codes: 0 all waves hold, 1 a wave is violated, 2 error, 3 a wave proved nothing.`,
		Example: `  shop soak --duration 1h --engine local --strategy redis-lua,for-update
  shop soak --seed 42 --wave 2s --strategy none`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", nil, strategyUsage+" (default: one per family)")
	flags.DurationVar(&o.duration, "duration", time.Minute, "length of the run, 10s to 24h")
	flags.DurationVar(&o.wave, "wave", 10*time.Second, "length of a wave, 1s to 10m")
	flags.IntVar(&o.clients, "clients", 64, "maximum concurrent clients")
	flags.IntVar(&o.processes, "processes", 2, "number of shop processes")
	flags.BoolVar(&o.kill, "kill", true, "occasional kill of the last shop process during a wave")
	flags.Uint64Var(&o.seed, "seed", 0, "seed that determines the waves (default: random)")
	o.engines.registerOwn(c)
	o.shops.register(c, true)
	o.output.register(c)
	setHelp(c, "docs/reference/commands/soak.md", "strategy", "duration", "engine", "seed", "report")
	return c
}

func (o *soakOptions) run(c *cobra.Command) error {
	config, err := o.check(c)
	if err != nil {
		return err
	}
	if err := o.output.check(nil); err != nil {
		return err
	}
	if !c.Flags().Changed("seed") {
		o.seed = uint64(rand.Uint32()) // short enough to type again
	}
	result, err := o.soak(c.Context(), config, c.ErrOrStderr())
	if result == nil || len(result.Waves) == 0 {
		return cmp.Or(err, c.Context().Err())
	}
	if err != nil {
		result.LeftOut = append(result.LeftOut, "the rest of the run: "+oneLine(err))
	}
	err = errors.Join(err, o.output.write(c, result.Document(), result.Print))
	switch violated, void := result.Violated(), result.Void(); {
	case violated > 0:
		return &exitError{exitBroken, fmt.Sprintf("%d of %d waves violated; repeat with: %s", violated, len(result.Waves), result.Command())}
	case err != nil:
		return err
	case result.Interrupted:
		return &exitError{exitInterrupted, "interrupted"}
	case void > 0:
		return &exitError{exitInconclusive, fmt.Sprintf("%d of %d waves void", void, len(result.Waves))}
	}
	return nil
}

// check checks the flags before anything starts.
func (o *soakOptions) check(c *cobra.Command) (config engine.Config, err error) {
	if o.onePerFamily = !c.Flags().Changed("strategy"); o.onePerFamily {
		o.strategies = []string{"all"}
	}
	o.all = slices.Equal(o.strategies, []string{"all"})
	for i, name := range o.strategies {
		if name != "all" {
			o.strategies[i] = lockstrategy.Resolve(name)
		}
	}
	if o.strategies, err = choose("strategy", o.strategies, lockstrategy.Names(), "shop strategies"); err != nil {
		return config, err
	}
	if err := cmp.Or(
		checkRange("duration", o.duration, 10*time.Second, 24*time.Hour),
		checkRange("wave", o.wave, time.Second, min(10*time.Minute, o.duration)),
		checkRange("clients", o.clients, 1, 20_000),
		checkRange("processes", o.processes, 1, 64),
		o.engines.checkOwn(), o.shops.validate(),
	); err != nil {
		return config, err
	}
	config, err = o.engines.config(c, o.shops.Settings)
	if !o.all {
		config.Needs = lockServersOf(o.strategies...)
	}
	return config, err
}

// soak opens servers and shops, and runs the waves.
func (o *soakOptions) soak(ctx context.Context, config engine.Config, stderr io.Writer) (result *soak.Result, err error) {
	e, err := engine.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	strategies, leftOut := o.playable(e)
	if why := o.shops.Uncheck(e); why != "" {
		leftOut = append(leftOut, why)
	}
	if len(strategies) == 0 {
		return nil, fmt.Errorf("no strategy can run here: %s", leftOut[0])
	}
	bed := &trial.Storefront{}
	defer func() { err = errors.Join(err, bed.Close()) }()
	if err := bed.ServeChildren(ctx, e, o.shops.Config, o.processes, nil); err != nil {
		return nil, err
	}
	progress, started := newProgress(stderr), time.Now()
	defer progress.clear()
	result, err = soak.Run(ctx, soak.Config{
		Plan:     soak.Plan{Seed: o.seed, Strategies: strategies, Clients: o.clients, Processes: o.processes, Kill: o.kill},
		Duration: o.duration, Length: o.wave, Shops: bed.Children,
		Auditor:  rush.Database{DB: e.Admin, Nodes: e.Cluster.DBs},
		Patience: o.shops.Settings.Wait + 30*time.Second,
		Progress: func(w soak.Wave) {
			progress.show("%s of %s: wave %d, %s, %s, %d clients", time.Since(started).Round(time.Second), o.duration, w.Number, w.Kind, w.Strategy, w.Clients)
		},
		Violated: func(w soak.Waved) {
			progress.clear()
			for _, v := range w.Violations {
				fmt.Fprintf(stderr, "shop: %s, seed %d: %s\n", w.Name(), o.seed, v)
			}
		},
	})
	if result != nil {
		result.Server, result.Cores, result.LeftOut = e.Server, runtime.NumCPU(), leftOut
		result.Flags = engine.Flags(o.engines.name, o.engines.localDB, o.engines.localRedis)
	}
	return result, err
}

// playable returns the strategies of the waves, and for each other strategy why it is skipped.
func (o *soakOptions) playable(e *engine.Engine) (strategies []soak.Strategy, leftOut []string) {
	missing := lockstrategy.AllMissing(onengine.Deps(e))
	names := o.strategies
	if o.onePerFamily {
		names = trial.OneOfEachFamily(e, o.processes)
	}
	for _, name := range names {
		entry, _ := lockstrategy.ByName(name)
		switch {
		case missing[name] != "":
			leftOut = append(leftOut, name+": "+missing[name])
		case o.all && entry.Promised(trial.CrowdAt(o.processes), e.Database) != verdict.Holds:
			// "all" means all that promise to hold
		default:
			strategies = append(strategies, soak.Strategy{Name: name, Kills: entry.Promised(promise.Crash, e.Database) == verdict.Holds})
		}
	}
	return strategies, leftOut
}
