package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
	"github.com/oversell/oversell/internal/plural"
	"github.com/oversell/oversell/internal/purchase"
)

// maxLease is the maximum of --lease, for `shop verify` and for running shops. The minimum for `shop verify`
// is its default, since etcd grants no shorter lease.
const maxLease = time.Hour

const maxRepeat = 1000

type verifyOptions struct {
	strategies []string
	faults     []string
	quick      bool
	servers    engine.Config
	redisWait  int
	soldOut    bool   // whether the shops run the sold-out check
	admission  string // admission control of the shops: adaptive or off
	target     string
	product    string
	noKeys     bool
	history    string
	lanes      int
	repeat     int
	explain    string // the cell (strategy and condition) to explain, instead of a run
	from       string // the report with that cell
	app        verifyAppFlags
	output     verifyOutput
	lease      time.Duration // lease of the shops under a fault
	redlock    int           // number of Redlock nodes
}

func verifyCommand() *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify",
		Short: "Test every strategy, also under faults, and compare with its promises",
		Long: `Test every strategy and compare each verdict with the catalogue's promise. Only --engine local injects
faults: it starts private servers that it can kill. Without it, the explorer and bursts of buyers run on
SQLite. --quick suits every push, --app tests your own program, and --target a service over HTTP.

Exit codes: 0 every cell that ran is as promised, 1 a promise is broken or some cells failed, 2 error
or no cell judged, 3 a result is inconclusive.`,
		Example: `  shop verify --engine local --strategy redis,fenced --fault pause,redis-restart
  shop verify --quick --report verify.xml`,
		Args:    noArguments,
		PreRunE: func(*cobra.Command, []string) error { return o.output.check(map[string]string{"history": o.history}) },
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", []string{"all"}, strategyUsage)
	o.registerTarget(flags)
	flags.BoolVar(&o.quick, "quick", false, "explorer and bursts on the embedded engine, in one process")
	flags.StringVar(&o.target, "target", "", targetUsage)
	flags.StringVar(&o.history, "history", "", "`folder` for the history of each cell, NDJSON (default: temporary)")
	flags.IntVar(&o.lanes, "lanes", 2, "cells in parallel, each on its own servers")
	flags.IntVar(&o.repeat, "repeat", 1, "runs per cell, or bursts with --app")
	showDefault(flags, "repeat", "1; with --app: 5")
	flags.DurationVar(&o.lease, "lease", fault.DefaultTimes().Lease, "lifetime of a lock without a renewal, under a fault")
	flags.IntVar(&o.redlock, "redlock-nodes", engine.RedlockNodes, "number of Redlock nodes, from 3 to 15")
	flags.StringVar(&o.explain, "explain", "", "`cell` of an earlier run to explain, for example redis/pause")
	flags.StringVar(&o.from, "from", "", "JSON report `file` for --explain (default: newest in "+matrixResults+")")
	addFlags(c, underServers, func(flags *pflag.FlagSet) { registerEngine(flags, &o.servers) })
	addFlags(c, underShop, func(flags *pflag.FlagSet) {
		registerFronts(flags, &o.soldOut, false, &o.admission, noAdmission, &o.redisWait)
	})
	o.app.register(c)
	o.output.register(c)
	setHelp(c, "docs/guides/add-to-ci.md", "strategy", "fault", "engine", "quick", "report")
	return c
}

// registerTarget adds the flags of a test of a running service, except those for its URL and strategies.
func (o *verifyOptions) registerTarget(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.faults, "fault", []string{"all"}, "fault `names`, comma-separated, or all; list: shop help faults")
	flags.StringVar(&o.product, "product", purchase.DefaultProduct, "with --target: `name` of the product; each run deletes its records")
	flags.BoolVar(&o.noKeys, "no-idempotency-keys", false, "with --target: no test of duplicates, for services without Idempotency-Key")
}

// ended returns a function that runs after each cell (a strategy under a condition). It prints the cell in
// one line, and writes the report files, so that a killed run leaves its results. If standard output carries
// a format other than text, the line goes to standard error.
func (o *verifyOptions) ended(c *cobra.Command, p *progress) func(last verify.Cell, sofar verify.Report) {
	keeper := verify.Keeper{Files: o.output.files, Command: c.CommandPath()}
	return func(last verify.Cell, sofar verify.Report) {
		if o.output.printsText() {
			p.clear()
			fmt.Fprintln(c.OutOrStdout(), last.Line())
		} else {
			p.show("%s under %s: %s", last.Strategy, last.Fault, last.Verdict)
		}
		keeper.Keep(sofar)
	}
}

func (o *verifyOptions) run(c *cobra.Command) (err error) {
	if c.Flags().Changed("explain") || o.from != "" {
		return o.explainCell(c)
	}
	if o.app.file != "" {
		return o.runApp(c)
	}
	if err := errors.Join(rejectFlags(c, needsApp, appOnlyFlags...), o.checkFronts()); err != nil {
		return err
	}
	var strategies []verify.Strategy
	var faults []promise.Condition
	if o.target == "" {
		strategies, faults, err = o.check(c)
	} else {
		faults, err = o.checkTarget(c)
	}
	if err != nil {
		return err
	}
	progress := newProgress(c.ErrOrStderr())
	cells := verify.Config{
		Command: typed(c), Strategies: strategies, Faults: faults, Conns: defaultConns,
		Ended: o.ended(c, progress), Progress: progress.show, Warn: warnTo(c.ErrOrStderr()),
		SoldOutCheck: o.soldOut, Admission: o.admission == adaptive,
	}
	var report verify.Report
	switch {
	case o.target != "":
		report, err = cells.At(c.Context(), verify.Service{
			URL: o.target, Token: os.Getenv("SHOP_ADMIN_TOKEN"), Product: o.product, Strategies: o.strategies, NoKeys: o.noKeys,
		})
	case o.servers.Name == engine.Local:
		report, err = o.local(c, cells)
	default:
		report, err = cells.Embedded(c.Context())
	}
	progress.clear()
	if err == nil && len(report.Cells) == 0 { // a CI job that tested nothing must fail
		err = errors.New("no cell can run here: " + strings.Join(report.LeftOut, "; "))
	}
	if c.Context().Err() != nil || err != nil {
		report.Unfinish(unfinished(c.Context(), err))
	}
	if len(report.Cells) > 0 { // written after an error, too
		err = errors.Join(err, o.output.write(c, report))
	}
	if err != nil {
		return err
	}
	return exitOf(report)
}

func (o *verifyOptions) checkFronts() error {
	if err := checkAdmission(o.admission); err != nil {
		return err
	}
	if (o.soldOut || o.admission == adaptive) && o.target != "" {
		return fmt.Errorf("--%s and --%s cannot be combined with --target", soldOutCheck, admission)
	}
	return nil
}

// check checks the flags and returns the rows (strategies) and columns (conditions) of the matrix to run.
func (o *verifyOptions) check(c *cobra.Command) (rows []verify.Strategy, columns []promise.Condition, _ error) {
	if err := rejectFlags(c, "requires --target", "product", "no-idempotency-keys"); err != nil {
		return nil, nil, err
	}
	if o.quick {
		if c.Flags().Changed("engine") && o.servers.Name != engine.Embedded || c.Flags().Changed("fault") {
			return nil, nil, errors.New("--quick cannot be combined with --fault and another --engine: it runs the explorer and bursts on the embedded engine")
		}
		o.servers.Name = engine.Embedded
		o.faults = texts(append(promise.Explorations(), promise.Rush, promise.Units, promise.TwoProducts, promise.Duplicates))
	}
	if err := cmp.Or(
		checkEngine(o.servers.Name), checkLocal(o.servers), o.checkRedisWait(),
		checkRange("lanes", o.lanes, 1, 16), checkRange("repeat", o.repeat, 1, maxRepeat),
		checkRange("lease", o.lease, fault.DefaultTimes().Lease, maxLease), checkRange("redlock-nodes", o.redlock, 3, 15),
	); err != nil {
		return nil, nil, err
	}
	if o.servers.Name != engine.Local {
		if err := rejectFlags(c, "requires --engine local", "repeat", "history", "lanes", "lease", "redlock-nodes"); err != nil {
			return nil, nil, err
		}
	}
	rows, err := o.rows()
	if err != nil {
		return nil, nil, err
	}
	faults := append(promise.Explorations(), promise.Played()...)
	columns, err = choose("fault", o.faults, faults, "shop help faults")
	for _, flag := range idleFlags(c, rows, columns) {
		warnTo(c.ErrOrStderr())(flag)
	}
	return rows, columns, err
}

// idleFlags says which given flags have no effect on these strategies (rows) and conditions (columns).
func idleFlags(c *cobra.Command, rows []verify.Strategy, columns []promise.Condition) (says []string) {
	isFault := func(f promise.Condition) bool { return slices.Contains(promise.Faults(), f) }
	needsRedlock := func(s verify.Strategy) bool { return slices.Contains(s.Needs, lockstrategy.NeedsRedlock) }
	if c.Flags().Changed("lease") && !slices.ContainsFunc(columns, isFault) {
		says = append(says, "--lease has no effect here: it applies only under a fault")
	}
	if c.Flags().Changed("redlock-nodes") && !slices.ContainsFunc(rows, needsRedlock) {
		says = append(says, "--redlock-nodes has no effect here: none of the strategies uses Redlock")
	}
	return says
}

func (o *verifyOptions) checkRedisWait() error {
	if o.redisWait != 0 && (o.servers.LocalRedis == "" || o.servers.LocalRedis == topology.Single) {
		return fmt.Errorf("--redis-wait requires --local-redis %s or %s", topology.Sentinel, topology.Cluster)
	}
	return checkRedisWait(o.redisWait)
}

// rows returns the chosen strategies of the catalogue.
func (o *verifyOptions) rows() ([]verify.Strategy, error) {
	known, err := verify.Catalogue(o.servers.LocalDB, o.servers.LocalRedis, o.redisWait > 0)
	if err != nil {
		return nil, err
	}
	chosen, err := choose("strategy", o.strategies, lockstrategy.Names(), "shop strategies")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(known, func(s verify.Strategy) bool { return !slices.Contains(chosen, s.Name) }), nil
}

// choose returns the names that a flag lists, in the order of the list `known`. The parameter `command` is
// the command that prints the known names, for the error message.
func choose[K ~string](flag string, asked []string, known []K, command string) ([]K, error) {
	if slices.Equal(asked, []string{"all"}) {
		return known, nil
	}
	for _, name := range asked {
		if !slices.Contains(known, K(name)) {
			return nil, nearest.Unknown(flag, name, known, command)
		}
	}
	if len(asked) == 0 {
		return nil, fmt.Errorf("--%s needs names, or all; list them with: %s", flag, command)
	}
	return slices.DeleteFunc(slices.Clone(known), func(name K) bool { return !slices.Contains(asked, string(name)) }), nil
}

// exitOf returns an error with the exit code. A broken promise takes precedence over cells that shop itself
// failed to judge, and these over inconclusive cells.
func exitOf(r verify.Report) error {
	sorted := r.Sort()
	switch failed := plural.Count(len(sorted.Failed), "cell") + " not judged because of harness errors"; {
	case len(sorted.Failed) > 0 && len(sorted.Failed) == len(r.Cells):
		return &exitError{exitHarness, failed}
	case len(sorted.Broken) > 0:
		return &exitError{exitBroken, plural.Count(len(sorted.Broken), "cell") + " not as promised"}
	case len(sorted.Failed) > 0:
		return &exitError{exitBroken, failed}
	case len(sorted.Void) > 0:
		return &exitError{exitInconclusive, plural.Count(len(sorted.Void), "cell") + " inconclusive"}
	}
	return nil
}
