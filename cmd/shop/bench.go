package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/load/sweep"
	"github.com/oversell/oversell/internal/lockstrategy"
)

type benchOptions struct {
	strategies []string
	clients    []int
	processes  int
	rounds     int
	round      time.Duration
	engines    engineFlags
	shops      shopFlags
	output     output

	onePerFamily bool // --strategy is not given
}

func benchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure the throughput of strategies for several numbers of clients",
		Long: `Measure sales per second and waiting times for several numbers of clients, who all keep buying one
product. The table shows the medians of interleaved rounds. Default strategies: the first of each family
that holds under two conditions, rush and crash. Compare strategies of one run, not of two runs. If a
strategy's lock expires, the output also shows its time in the critical section, and a suitable lease.`,
		Example: `  shop bench --strategy for-update,redis-lua --clients 1,16
  shop bench --engine local --local-db postgres --report bench.html`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", nil, strategyUsage+" (default: one per family)")
	flags.IntSliceVar(&o.clients, "clients", []int{1, 4, 16, 64, 256}, "numbers of clients, ascending")
	flags.IntVar(&o.processes, "processes", 1, "number of shop processes")
	flags.IntVar(&o.rounds, "rounds", 3, "measurements per strategy and number of clients")
	flags.DurationVar(&o.round, "round", 2*time.Second, roundUsage)
	o.engines.registerOwn(c)
	o.shops.register(c, true)
	o.output.register(c)
	setHelp(c, "docs/reference/benchmarks.md", "strategy", "clients", "engine", "local-db", "report")
	return c
}

func (o *benchOptions) run(c *cobra.Command) error {
	config, err := o.check(c)
	if err != nil {
		return err
	}
	progress := newProgress(c.ErrOrStderr())
	result, err := sweep.Config{
		Strategies: o.strategiesOn, Clients: o.clients, Processes: o.processes, Shops: o.shops.Config, Rounds: o.rounds, Round: o.round, Progress: progress.show,
	}.Run(c.Context(), config)
	progress.clear()
	if err != nil {
		return err
	}
	return o.output.write(c, result.Document(), result.Print)
}

func (o *benchOptions) strategiesOn(e *engine.Engine) []string {
	if o.onePerFamily {
		return trial.OneOfEachFamily(e, o.processes)
	}
	return o.strategies
}

func (o *benchOptions) check(c *cobra.Command) (config engine.Config, err error) {
	if o.onePerFamily = !c.Flags().Changed("strategy"); o.onePerFamily {
		o.strategies = []string{"all"}
	}
	for i, name := range o.strategies {
		if name != "all" {
			o.strategies[i] = lockstrategy.Resolve(name)
		}
	}
	if o.strategies, err = choose("strategy", o.strategies, lockstrategy.Names(), "shop strategies"); err != nil {
		return config, err
	}
	if len(o.clients) == 0 {
		return config, errors.New("--clients needs numbers, for example 1,16,256")
	}
	for i, n := range o.clients {
		if err := checkRange("clients", n, 1, 20_000); err != nil {
			return config, err
		}
		if i > 0 && n <= o.clients[i-1] {
			return config, fmt.Errorf("--clients must ascend (got %d after %d)", n, o.clients[i-1])
		}
	}
	if err := cmp.Or(
		checkRange("processes", o.processes, 1, 64),
		checkRange("rounds", o.rounds, 1, 100),
		checkRange("round", o.round, 300*time.Millisecond, time.Minute),
		checkEngine(o.engines.Name), o.shops.validate(),
	); err != nil {
		return config, err
	}
	return o.engines.config(c, o.shops.Settings)
}
