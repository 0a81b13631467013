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

// benchOptions are the flags of bench.
type benchOptions struct {
	strategies []string
	clients    []int
	processes  int
	rounds     int
	round      time.Duration
	engines    engineFlags
	shops      shopFlags
	output     output

	few bool // no --strategy
}

func benchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure what strategies sell a second, over the number of clients",
		Long: `Measure what strategies sell a second, and how long buyers wait, over the number
of clients. All ask for one product, each again as soon as it is answered, and
the stock has no end. The rounds of all strategies and clients go in turn, so a
machine that is slow for a while is slow to all; medians are shown. Unless strategies are named,
the first of each family is measured that holds in a crowd and under a crash.

With --report FILE.html there is a picture of it. Servers, shops and clients share
the machine: compare the strategies of one run, and not two runs.`,
		Example: `  shop bench
  shop bench --engine local --strategy for-update,redis-lua,coalesced --report bench.html
  shop bench --engine local --local-db postgres --clients 64,640 --admission off`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", nil, "strategies by name, a,b,...; or all; unless given, one of each family")
	flags.IntSliceVar(&o.clients, "clients", []int{1, 4, 16, 64, 256}, "numbers of clients, rising")
	flags.IntVar(&o.processes, "processes", 1, "shop processes, among which the clients are divided")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds of each strategy with each number of clients")
	flags.DurationVar(&o.round, "round", 2*time.Second, "how long a round lasts, of which a third is not counted")
	o.engines.registerOwn(c)
	o.shops.register(c, true)
	o.output.register(c)
	return c
}

func (o *benchOptions) run(c *cobra.Command) error {
	config, err := o.check(c)
	if err != nil {
		return err
	}
	if err := o.output.check(nil); err != nil {
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

// strategiesOn returns the strategies to measure on an engine.
func (o *benchOptions) strategiesOn(e *engine.Engine) []string {
	if o.few {
		return trial.OneOfEachFamily(e, o.processes)
	}
	return o.strategies
}

func (o *benchOptions) check(c *cobra.Command) (config engine.Config, err error) {
	if o.few = !c.Flags().Changed("strategy"); o.few {
		o.strategies = []string{"all"}
	}
	for i, name := range o.strategies {
		if name != "all" {
			o.strategies[i] = lockstrategy.Resolve(name)
		}
	}
	if o.strategies, err = choose("--strategy", o.strategies, lockstrategy.Names()); err != nil {
		return config, err
	}
	if len(o.clients) == 0 {
		return config, errors.New("--clients is empty; give numbers such as 1,16,256")
	}
	for i, n := range o.clients {
		if n < 1 || n > 20_000 {
			return config, fmt.Errorf("--clients has %d; 1 to 20000 are allowed", n)
		}
		if i > 0 && n <= o.clients[i-1] {
			return config, fmt.Errorf("--clients has %d after %d; give rising numbers", n, o.clients[i-1])
		}
	}
	switch {
	case o.processes < 1 || o.processes > 64:
		return config, fmt.Errorf("--processes is %d; 1 to 64 are allowed", o.processes)
	case o.rounds < 1 || o.rounds > 100:
		return config, fmt.Errorf("--rounds is %d; 1 to 100 are allowed", o.rounds)
	case o.round < 300*time.Millisecond || o.round > time.Minute:
		return config, fmt.Errorf("--round is %s; 300ms to 1m are allowed", o.round)
	}
	if err := cmp.Or(o.engines.checkOwn(), o.shops.validate()); err != nil {
		return config, err
	}
	return o.engines.config(c, o.shops.Settings)
}
