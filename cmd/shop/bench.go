package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/sizing/measure"
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
	result, err := o.sweep(c.Context(), config, progress)
	progress.clear()
	if err != nil {
		return err
	}
	return o.output.write(c, result.Document(), result.Print)
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

// sweep measures round by round.
func (o *benchOptions) sweep(ctx context.Context, config engine.Config, progress *progress) (_ *sweep.Result, err error) {
	r := &sweep.Result{Cores: runtime.NumCPU(), Processes: o.processes, Round: o.round, Clients: o.clients, Started: time.Now()}
	bed, err := openSizeBed(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bed.close()) }()
	names := o.strategies
	if o.few {
		names = oneOfEachFamily(bed.engine, o.processes)
	}
	strategies := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		why := bed.missing[name]
		if why != "" {
			r.LeftOut = append(r.LeftOut, name+": "+why)
		}
		return why != ""
	})
	if len(strategies) == 0 {
		return nil, fmt.Errorf("nothing of this can run here: %s", r.LeftOut[0])
	}
	shops, err := bed.serve(ctx, o.shops.Config, o.processes, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shops.Close()) }()
	r.Server = bed.engine.Server
	rounds := make([][]measure.Round, len(strategies)*len(o.clients)) // strategy by strategy
	for round := range o.rounds {
		for s, name := range strategies {
			if err := bed.restock(ctx); err != nil {
				return nil, err
			}
			for n, clients := range o.clients {
				progress.show("round %d of %d: %s, %d clients", round+1, o.rounds, name, clients)
				seen, err := measure.Load{
					URLs: shops.URLs, Strategy: name, Products: bed.products(1), Buyers: clients,
					WarmUp: o.round / 3, Duration: o.round - o.round/3, CPU: runtime.GOOS == "linux",
				}.Run(ctx)
				if err != nil {
					return nil, fmt.Errorf("%s, %d clients: %w", name, clients, err)
				}
				at := s*len(o.clients) + n
				rounds[at] = append(rounds[at], seen)
				r.Others += seen.Others / float64(o.rounds*len(rounds))
			}
		}
	}
	for i, all := range rounds {
		r.Points = append(r.Points, sweep.Of(strategies[i/len(o.clients)], o.clients[i%len(o.clients)], all))
	}
	r.Took = time.Since(r.Started)
	return r, nil
}
