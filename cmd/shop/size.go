package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/load/sizing/forecast"
	"github.com/oversell/oversell/internal/load/sizing/measure"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// sizeOptions are the flags of size.
type sizeOptions struct {
	strategies []string
	shop       sizing.Shop
	nodeRTT    float64 // between the database's nodes, ms
	points     string  // a file to predict from
	calibrate  string  // a file to write
	measure    string  // the same, of the whole grid
	rounds     int
	round      time.Duration
	databases  []string
	engineName string

	output output
}

func sizeCommand() *cobra.Command {
	var o sizeOptions
	c := &cobra.Command{
		Use:   "size",
		Short: "Predict the sales a second of a shop, and what gives way first",
		Long: `Predict the sales a second of each strategy, and what gives way first: the
product's row, a lock, a processor, the connections. docs/design/sizing.md has the laws,
what was measured, and how far the predictions were from it.

The processor time of a sale and the time of a turn are those of the machine of
docs/reference/throughput.md, unless --calibrate has measured yours and --points names the file.
A file whose name ends with .csv is CSV, and JSON otherwise.

The buyers are a closed loop: each asks again when it is answered. Products are
asked for alike. A prediction is for a steady load of sales; it knows no failure.`,
		Example: `  shop size --commit-ms 2 --products 500
  shop size --rtt-ms 0.5 --products 500 --processes 8 --cores 8 --buyers 400
  shop size --nodes 3 --node-rtt-ms 1 --strategy for-update,redis-lua
  shop size --calibrate mine.json --engine local
  shop size --points mine.json --products 500`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", []string{"all"}, "strategies by name, a,b,...; or all")
	flags.IntVar(&o.shop.Products, "products", 1, "products that are asked for")
	flags.IntVar(&o.shop.Processes, "processes", 1, "shop processes")
	flags.IntVar(&o.shop.Buyers, "buyers", 64, "buyers, each of whom asks again when it is answered")
	flags.IntVar(&o.shop.Nodes, "nodes", 1, "nodes of a Galera cluster, each with a copy of everything")
	flags.IntVar(&o.shop.Writers, "writers", 0, "of --nodes those that shops write to, each process to one; 0 is as many as there are processes, at most --nodes")
	flags.Int64Var(&o.shop.Records, "records", 0, "records in purchase_history")
	flags.Float64Var(&o.shop.CommitMS, "commit-ms", -1, "what COMMIT takes beside its round trip, ms; unless given, as measured")
	flags.Float64Var(&o.shop.RTTMS, "rtt-ms", 0, "network round trip between shop and database, ms, beyond loopback")
	flags.Float64Var(&o.shop.LockRTTMS, "redis-rtt-ms", -1, "the same to Redis, ZooKeeper or etcd; unless given, --rtt-ms")
	flags.Float64Var(&o.nodeRTT, "node-rtt-ms", -1, "the same between the database's nodes; unless given, --rtt-ms")
	flags.BoolVar(&o.shop.KeepsRow, "row-until-disk", false, "the database keeps a row locked until COMMIT is over, as PostgreSQL and a binary log do; with --nodes it does")
	flags.Float64Var(&o.shop.DatabaseCores, "cores", 2, "processors of each database node; with --one-machine, all there are")
	flags.Float64Var(&o.shop.ShopCores, "shop-cores", 2, "processors of each shop process")
	flags.BoolVar(&o.shop.OneMachine, "one-machine", false, "database, Redis, shops and buyers share --cores, as where it was measured")
	flags.IntVar(&o.shop.Conns, "db-conns", defaultConns, "connections of each process to the database")
	flags.StringVar(&o.points, "points", "", "a `file` of --calibrate to predict from, instead of the reference machine")
	flags.StringVar(&o.calibrate, "calibrate", "", "measure this machine and write the points to a `file`, with --engine local; Linux; some 40 s for all strategies")
	flags.StringVar(&o.measure, "measure", "", "the same, but every point of docs/reference/throughput.md: twenty minutes on a machine that does nothing else")
	flags.StringVar(&o.engineName, "engine", engine.Local, "with --calibrate and --measure: local, private servers")
	flags.StringSliceVar(&o.databases, "local-db", nil, "with --calibrate and --measure: private databases, as serve takes them, a,b,...")
	flags.IntVar(&o.rounds, "rounds", 3, "with --calibrate and --measure: how often each point is measured; the median counts; unless given, once with --calibrate")
	flags.DurationVar(&o.round, "round", 600*time.Millisecond, "with --calibrate and --measure: how long, of which a third is not counted")
	for _, flag := range []string{"commit-ms", "redis-rtt-ms", "node-rtt-ms"} {
		flags.Lookup(flag).DefValue = "0" // which the help does not show: -1 stands for what it says in words
	}
	o.output.register(c)
	return c
}

func (o *sizeOptions) run(c *cobra.Command) error {
	if err := o.check(c); err != nil {
		return err
	}
	if err := o.output.check(nil); err != nil {
		return err
	}
	if o.calibrate != "" || o.measure != "" {
		return o.measured(c)
	}
	report, err := forecast.Of(o.shop, o.nodeRTT, o.strategies, o.points)
	if err != nil {
		return err
	}
	return o.output.write(c, report.Document(), report.Print)
}

func (o *sizeOptions) check(c *cobra.Command) error {
	for _, n := range []struct {
		flag     string
		value    float64
		min, max float64
	}{
		{"products", float64(o.shop.Products), 1, 1e9},
		{"processes", float64(o.shop.Processes), 1, 1e5},
		{"buyers", float64(o.shop.Buyers), 1, 1e5},
		{"nodes", float64(o.shop.Nodes), 1, 1e4},
		{"writers", float64(o.shop.Writers), 0, float64(o.shop.Nodes)},
		{"records", float64(o.shop.Records), 0, 1e12},
		{"commit-ms", o.shop.CommitMS, 0, 1e4},
		{"rtt-ms", o.shop.RTTMS, 0, 1e4},
		{"redis-rtt-ms", o.shop.LockRTTMS, 0, 1e4},
		{"node-rtt-ms", o.nodeRTT, 0, 1e4},
		{"cores", o.shop.DatabaseCores, 0.1, 1e4},
		{"shop-cores", o.shop.ShopCores, 0.1, 1e4},
		{"db-conns", float64(o.shop.Conns), 2, 1e5},
		{"rounds", float64(o.rounds), 1, 100},
	} {
		if c.Flags().Changed(n.flag) && !(n.value >= n.min && n.value <= n.max) { // a NaN is neither
			return fmt.Errorf("--%s is %v; %v to %v are allowed", n.flag, n.value, n.min, n.max)
		}
	}
	if err := o.checkMeasuring(c); err != nil {
		return err
	}
	switch {
	case o.shop.Writers > o.shop.Processes:
		return fmt.Errorf("--writers is %d and --processes %d: a process writes to one node; give as many processes", o.shop.Writers, o.shop.Processes)
	case o.shop.Nodes == 1 && c.Flags().Changed("node-rtt-ms"):
		return errors.New("--node-rtt-ms is between nodes, and --nodes is 1; give --nodes 3")
	case o.shop.OneMachine && c.Flags().Changed("shop-cores"):
		return errors.New("--shop-cores are the shops' own, and with --one-machine all share --cores; give one of them")
	}
	switch {
	case len(o.strategies) == 0:
		return errors.New("--strategy is empty; give a,b,... or all")
	case len(o.strategies) == 1 && o.strategies[0] == "all":
		o.strategies = lockstrategy.Names()
		return nil
	}
	seen := map[string]bool{}
	for i, name := range o.strategies {
		name = lockstrategy.Resolve(name)
		if _, ok := lockstrategy.ByName(name); !ok || o.strategies[i] == "" {
			return fmt.Errorf("--strategy %q is not known; there are %s, or all", o.strategies[i], strings.Join(lockstrategy.Names(), ", "))
		}
		if seen[name] {
			return fmt.Errorf("--strategy has %s twice", name)
		}
		seen[name], o.strategies[i] = true, name
	}
	return nil
}

// shopOfSize are the flags of the shop that is predicted.
var shopOfSize = []string{
	"products", "processes", "buyers", "nodes", "writers", "records", "commit-ms", "rtt-ms", "redis-rtt-ms", "node-rtt-ms",
	"row-until-disk", "cores", "shop-cores", "one-machine", "db-conns",
}

// checkMeasuring checks the flags of --calibrate and --measure.
func (o *sizeOptions) checkMeasuring(c *cobra.Command) error {
	if o.calibrate != "" && o.measure != "" {
		return errors.New("--calibrate and --measure are two ways to measure; give one of them")
	}
	if o.calibrate == "" && o.measure == "" {
		for _, flag := range []string{"engine", "local-db", "rounds", "round"} {
			if c.Flags().Changed(flag) {
				return fmt.Errorf("--%s is for --calibrate and --measure", flag)
			}
		}
		return nil
	}
	if o.points != "" {
		return errors.New("--points is a file to predict from, and --calibrate and --measure make one; give one of them")
	}
	for _, flag := range shopOfSize {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--%s is of the shop that is predicted, and --calibrate and --measure measure shops of their own; give it with --points", flag)
		}
	}
	if o.engineName != engine.Local {
		return fmt.Errorf("--engine is %q; servers are measured that this command starts: local", o.engineName)
	}
	if runtime.GOOS != "linux" {
		return errors.New("--calibrate and --measure read processor time from /proc: they need Linux")
	}
	if o.round < 300*time.Millisecond || o.round > time.Minute {
		return fmt.Errorf("--round is %s; 300ms to 1m are allowed", o.round)
	}
	if len(o.databases) == 0 {
		o.databases = []string{""}
	}
	for _, name := range o.databases {
		if err := checkLocalDB(name, engine.Local); err != nil {
			return err
		}
	}
	if o.calibrate != "" && len(o.databases) > 1 {
		return errors.New("--calibrate takes one --local-db")
	}
	return nil
}

// measured writes the points to a file.
func (o *sizeOptions) measured(c *cobra.Command) error {
	path := o.calibrate + o.measure // one of them is ""
	if o.calibrate != "" && !c.Flags().Changed("rounds") {
		o.rounds = 1
	}
	// Found out now and not after twenty minutes.
	file, err := os.CreateTemp(filepath.Dir(path), ".size-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	progress := newProgress(c.ErrOrStderr())
	m, err := measure.Config{
		Databases: o.databases, Strategies: o.strategies, Grid: o.measure != "", Rounds: o.rounds, Round: o.round, Conns: defaultConns, Progress: progress.show,
	}.Points(c.Context())
	progress.clear()
	if err != nil {
		return err
	}
	if m.Provisional != "" {
		fmt.Fprintf(c.ErrOrStderr(), "shop: warning: %s; measure anew when the machine does nothing else\n", m.Provisional)
	}
	text, err := m.File(path)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d points in %s; shop size --points %s predicts from them\n", len(m.Points), path, path)
	return err
}
