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

	all bool // --strategy all
	few bool // no --strategy
}

func soakCommand() *cobra.Command {
	var o soakOptions
	c := &cobra.Command{
		Use:   "soak",
		Short: "Load the shop for long, in changing waves, with an audit after each",
		Long: `Load the shop for long, in waves that change: steady, a burst for few units, a
ramp, idle, a restock in the middle of the sale, and kill -9 of a shop process. After
each wave, when all buyers are answered, the books are audited. A seed draws the
waves; the same seed has the same ones.

Each second it notes heap, goroutines, descriptors and memory of each shop process,
and the p99 of the buyers. After each audit it notes them at rest. What grows at rest
in each quarter of a process's life is said to grow; it does not change the exit code.

all are the strategies that promise to hold on so many processes; unless given, the
first of each family is played that holds under a crash, too. One that is named is
played whatever it promises, and killed only where it promises to hold under a crash.

Exit code: 0; 1 when a wave is violated; 2 when something is missing or down; 3 when a
wave is void: what should have been sold or refused in it was not.`,
		Example: `  shop soak
  shop soak --duration 1h --engine local --strategy redis-lua,coalesced,for-update --report soak.html
  shop soak --seed 42 --wave 2s --strategy none`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", nil, "strategies by name, a,b,...; or all; unless given, one of each family")
	flags.DurationVar(&o.duration, "duration", time.Minute, "how long it lasts, 10s to 24h; no wave begins that would end later")
	flags.DurationVar(&o.wave, "wave", 10*time.Second, "how long buyers come in a wave, 1s to 10m")
	flags.IntVar(&o.clients, "clients", 64, "clients at once, at most")
	flags.IntVar(&o.processes, "processes", 2, "shop processes, among which the clients are divided")
	flags.BoolVar(&o.kill, "kill", true, "now and then kill the last shop process in the middle of a wave")
	flags.Uint64Var(&o.seed, "seed", 0, "draws the waves; unless given, it is drawn itself and printed")
	o.engines.registerOwn(c)
	o.shops.register(c, true)
	o.output.register(c)
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
		o.seed = uint64(rand.Uint32()) // short enough to be typed again
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

// check checks everything before anything is started.
func (o *soakOptions) check(c *cobra.Command) (config engine.Config, err error) {
	if o.few = !c.Flags().Changed("strategy"); o.few {
		o.strategies = []string{"all"}
	}
	o.all = slices.Equal(o.strategies, []string{"all"})
	for i, name := range o.strategies {
		if name != "all" {
			o.strategies[i] = lockstrategy.Resolve(name)
		}
	}
	if o.strategies, err = choose("--strategy", o.strategies, lockstrategy.Names()); err != nil {
		return config, err
	}
	switch {
	case o.duration < 10*time.Second || o.duration > 24*time.Hour:
		return config, fmt.Errorf("--duration is %s; 10s to 24h are allowed", o.duration)
	case o.wave < time.Second || o.wave > 10*time.Minute:
		return config, fmt.Errorf("--wave is %s; 1s to 10m are allowed", o.wave)
	case o.wave > o.duration:
		return config, fmt.Errorf("--wave is %s, longer than --duration %s", o.wave, o.duration)
	case o.clients < 1 || o.clients > 20_000:
		return config, fmt.Errorf("--clients is %d; 1 to 20000 are allowed", o.clients)
	case o.processes < 1 || o.processes > 64:
		return config, fmt.Errorf("--processes is %d; 1 to 64 are allowed", o.processes)
	}
	if err := cmp.Or(o.engines.checkOwn(), o.shops.validate()); err != nil {
		return config, err
	}
	config, err = o.engines.config(c, o.shops.Settings)
	if !o.all {
		config.Needs = lockServersOf(o.strategies...)
	}
	return config, err
}

// soak opens servers and shops, and plays the waves.
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
		return nil, fmt.Errorf("nothing of this can run here: %s", leftOut[0])
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

// playable are the strategies that waves are drawn for, and why others are not.
func (o *soakOptions) playable(e *engine.Engine) (strategies []soak.Strategy, leftOut []string) {
	missing := lockstrategy.AllMissing(onengine.Deps(e))
	names := o.strategies
	if o.few {
		names = trial.OneOfEachFamily(e, o.processes)
	}
	for _, name := range names {
		entry, _ := lockstrategy.ByName(name)
		switch {
		case missing[name] != "":
			leftOut = append(leftOut, name+": "+missing[name])
		case o.all && entry.Promised(trial.CrowdAt(o.processes), e.Database) != verdict.Holds:
			// all are those that hold
		default:
			strategies = append(strategies, soak.Strategy{Name: name, Kills: entry.Promised(promise.Crash, e.Database) == verdict.Holds})
		}
	}
	return strategies, leftOut
}
