package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/load/sizing/forecast"
	"github.com/oversell/oversell/internal/load/sizing/measure"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// sizeOptions are the flags of size.
type sizeOptions struct {
	strategies []string
	shop       sizing.Shop
	nodeRTT    float64 // between the database's nodes, in ms
	points     string  // file to predict from
	calibrate  string  // file to write
	measure    string  // file to write, with the full set of points
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
		Short: "Predict each strategy's throughput and its bottleneck",
		Long: `Predict each strategy's throughput and its bottleneck: the product's row, a lock, a processor or the
connections. A prediction is for a steady load without failures. It uses the processor times of a
reference machine. To use your own machine, measure it with --calibrate FILE, then add --points FILE.
A file with the ending .csv is CSV; other files are JSON.`,
		Example: `  shop size --rtt-ms 0.5 --commit-ms 2 --products 500 --processes 8
  shop size --calibrate mine.json --engine local`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", []string{"all"}, strategyUsage)
	flags.IntVar(&o.shop.Products, "products", 1, "number of products, in equal demand")
	flags.IntVar(&o.shop.Processes, "processes", 1, "number of shop processes")
	flags.IntVar(&o.shop.Buyers, "buyers", 64, "number of buyers, each with its next order after an answer")
	flags.IntVar(&o.shop.Nodes, "nodes", 1, "number of Galera nodes")
	flags.IntVar(&o.shop.Writers, "writers", 0, "Galera nodes with writes; 0: one per process, up to --nodes")
	flags.Int64Var(&o.shop.Records, "records", 0, "records in purchase_history")
	flags.Float64Var(&o.shop.CommitMS, "commit-ms", -1, "time of a COMMIT without its round trip, in ms")
	flags.Float64Var(&o.shop.RTTMS, "rtt-ms", 0, "round trip between shop and database, in ms beyond loopback")
	flags.Float64Var(&o.shop.LockRTTMS, "redis-rtt-ms", -1, "round trip to Redis, ZooKeeper or etcd, in ms")
	flags.Float64Var(&o.nodeRTT, "node-rtt-ms", -1, "round trip between database nodes, in ms")
	flags.BoolVar(&o.shop.KeepsRow, "row-until-disk", false, "row lock until COMMIT returns, as with PostgreSQL or a binary log")
	flags.Float64Var(&o.shop.DatabaseCores, "cores", 2, "processors per database node; with --one-machine: all processors")
	flags.Float64Var(&o.shop.ShopCores, "shop-cores", 2, "processors per shop process")
	flags.BoolVar(&o.shop.OneMachine, "one-machine", false, "--cores shared by database, Redis, shops and buyers")
	flags.IntVar(&o.shop.Conns, "db-conns", defaultConns, "database connections per process")
	flags.StringVar(&o.points, "points", "", "`file` of --calibrate, in place of the reference machine")
	showDefault(flags, "commit-ms", "as measured")
	showDefault(flags, "redis-rtt-ms", "--rtt-ms")
	showDefault(flags, "node-rtt-ms", "--rtt-ms")
	addFlags(c, underMeasure, func(flags *pflag.FlagSet) {
		flags.StringVar(&o.calibrate, "calibrate", "", "`file` for a measurement of this machine: Linux, about 40 s")
		flags.StringVar(&o.measure, "measure", "", "`file` for the full measurement: about 20 minutes, idle machine")
		flags.StringVar(&o.engineName, "engine", engine.Local, "servers to measure: local (child processes)")
		flags.StringSliceVar(&o.databases, "local-db", nil, "databases to measure: "+strings.Join(localserver.DatabaseNames(), ", "))
		flags.IntVar(&o.rounds, "rounds", 3, "measurements per point; the median counts")
		showDefault(flags, "rounds", "3; with --calibrate: 1")
		flags.DurationVar(&o.round, "round", 600*time.Millisecond, roundUsage)
	})
	o.output.register(c)
	setHelp(c, "docs/guides/size-a-sale.md", "strategy", "products", "processes", "rtt-ms", "commit-ms")
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
		if err := checkRange(n.flag, n.value, n.min, n.max); err != nil && c.Flags().Changed(n.flag) {
			return err
		}
	}
	if err := o.checkMeasuring(c); err != nil {
		return err
	}
	switch {
	case o.shop.Writers > o.shop.Processes:
		return fmt.Errorf("--writers must be at most --processes (got %d and %d): each process writes to one node", o.shop.Writers, o.shop.Processes)
	case o.shop.Nodes == 1 && c.Flags().Changed("node-rtt-ms"):
		return errors.New("--node-rtt-ms requires several nodes; add --nodes 3")
	case o.shop.OneMachine && c.Flags().Changed("shop-cores"):
		return errors.New("--shop-cores cannot be combined with --one-machine, where shops share --cores")
	}
	switch {
	case len(o.strategies) == 0:
		return errors.New("--strategy needs names, or all; list them with: shop strategies")
	case len(o.strategies) == 1 && o.strategies[0] == "all":
		o.strategies = lockstrategy.Names()
		return nil
	}
	seen := map[string]bool{}
	for i, name := range o.strategies {
		name = lockstrategy.Resolve(name)
		if _, ok := lockstrategy.ByName(name); !ok || o.strategies[i] == "" {
			return unknownStrategy(o.strategies[i])
		}
		if seen[name] {
			return fmt.Errorf("--strategy names %s twice", name)
		}
		seen[name], o.strategies[i] = true, name
	}
	return nil
}

// shopOfSize lists the flags that describe the shop of a prediction.
var shopOfSize = []string{
	"products", "processes", "buyers", "nodes", "writers", "records", "commit-ms", "rtt-ms", "redis-rtt-ms", "node-rtt-ms",
	"row-until-disk", "cores", "shop-cores", "one-machine", "db-conns",
}

// checkMeasuring checks --calibrate, --measure and the flags that depend on them.
func (o *sizeOptions) checkMeasuring(c *cobra.Command) error {
	if o.calibrate != "" && o.measure != "" {
		return errors.New("--calibrate and --measure cannot be combined; use one of them")
	}
	if o.calibrate == "" && o.measure == "" {
		return rejectFlags(c, "requires --calibrate or --measure", "engine", "local-db", "rounds", "round")
	}
	if err := cmp.Or(
		rejectFlags(c, "cannot be combined with --calibrate and --measure, which write such a file", "points"),
		rejectFlags(c, "cannot be combined with --calibrate and --measure; use it in a prediction, with --points", shopOfSize...),
		checkChoice("engine", o.engineName, engine.Local),
		checkRange("round", o.round, 300*time.Millisecond, time.Minute),
	); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return errors.New("--calibrate and --measure require Linux: they read processor times from /proc")
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
		return fmt.Errorf("--calibrate needs one --local-db (got %d)", len(o.databases))
	}
	return nil
}

// measured measures this machine and writes the points to a file.
func (o *sizeOptions) measured(c *cobra.Command) error {
	path := cmp.Or(o.calibrate, o.measure)
	if o.calibrate != "" && !c.Flags().Changed("rounds") {
		o.rounds = 1
	}
	// A path that is not writable must fail now, not after 20 minutes.
	file, err := os.CreateTemp(filepath.Dir(path), ".size-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
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
		fmt.Fprintf(c.ErrOrStderr(), "shop: warning: %s; measure again when the machine is idle\n", m.Provisional)
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
