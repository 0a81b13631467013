package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/matrix"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/purchase"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	strategies []string
	faults     []string
	quick      bool
	race       bool
	engine     string
	localDB    string
	localRedis string
	redisWait  int
	soldOut    bool   // the shops run the sold-out check
	admission  string // admission control of the shops: adaptive or off
	target     string
	product    string
	noKeys     bool
	history    string
	lanes      int
	repeat     int
	explain    string // the cell to explain, instead of a run
	from       string // the report that has it
	app        verifyApp
	output     verifyOutput
	launch     fault.Launch                // the shops under test; tests have others
	extra      []verify.Strategy           // rows beside the catalogue's; of tests
	raceShop   func(addr string) *exec.Cmd // a shop under the race detector; nil is this one, built so
}

func verifyCommand() *cobra.Command {
	o := verifyOptions{launch: ownShop}
	c := &cobra.Command{
		Use:   "verify",
		Short: "Strike every strategy with every fault; show which promises hold",
		Long: `Strike every strategy with every fault on real servers, and compare what came
of it with what the catalogue promises.

--engine local starts servers that can be killed. The explorer comes first, with
and without events, on MariaDB, MySQL or PostgreSQL (--local-db): a missing FOR
UPDATE shows there, and not on SQLite. On Galera it does not run. Then every
fault is struck. The embedded engine has the explorer and the crowds; --quick,
for every push, is those but for the rush at two processes, and says what it
could not explore.

--race is a rush, and a crowd at each of many new products, in a shop that it
builds with the race detector, for the strategies that keep something in
memory: a data race contradicts every promise.

--app verifies a program of your own, in any language, as shop explore --app runs
it: every order of its buyers' commands, and then crowds of --rush-buyers at once,
--repeat of them, each judged by the queries that the file says must return no
row. docs/guides/test-your-shop.md has the file. Exit code 3 there when the search or the
rush was no proof.

--target verifies a service that runs already, in whatever language, by what its
buyers do: they rush, hang up, come over a slow way, and send a request twice.
docs/guides/test-your-shop.md has the routes. A strategy that makes no promise is expected
to hold.

Exit code: 0 all as promised; 1 a cell contradicts its promise, or could not be
judged by an error of the harness; 2 when something is missing or down, or no cell
could be judged; 3 when a cell has shown nothing.

The faults:
` + faultHelp(),
		Example: `  shop verify --engine local
  shop verify --quick --report verify.xml
  shop verify --race
  shop verify --engine local --strategy redis,fenced --fault pause,redis-restart
  shop verify --engine local --fault db-kill --repeat 50
  shop verify --engine local --local-db postgres --strategy for-update,serializable
  shop verify --engine local --local-db galera --strategy for-update --fault db-node-kill
  shop verify --engine local --report matrix.md --report matrix.json
  shop verify --explain redis/pause --from matrix.json
  shop verify --app oversell.yaml --report app.xml
  shop verify --target http://127.0.0.1:9000 --strategy my-lock`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", []string{"all"}, "strategies by name, a,b,...; or all")
	flags.StringSliceVar(&o.faults, "fault", []string{"all"}, "faults by name, a,b,...; or all: "+conditionNames())
	flags.BoolVar(&o.quick, "quick", false, "the explorer and the crowds but for the rush at two processes, on the embedded engine")
	flags.BoolVar(&o.race, "race", false, "a rush and a first use in a shop built with the race detector, for strategies that keep something in memory; needs Go, cgo and a checkout of the project")
	flags.StringVar(&o.engine, "engine", engine.Embedded, "embedded (the explorer and the crowds) or local (the explorer, the crowds and every fault)")
	registerLocalDB(c, &o.localDB)
	registerLocalRedis(c, &o.localRedis)
	registerRedisWait(c, &o.redisWait)
	flags.BoolVar(&o.soldOut, soldOutCheck, false, "sold-out check before each strategy of the shops under test")
	flags.StringVar(&o.admission, admission, noAdmission, "admission control of the shops under test: adaptive or off")
	flags.StringVar(&o.target, "target", "", "a service that runs already, in whatever language: http://host:port; admin token from SHOP_ADMIN_TOKEN")
	flags.StringVar(&o.product, "product", purchase.DefaultProduct, "with --target: what is sold; its records are cleared")
	flags.BoolVar(&o.noKeys, "no-idempotency-keys", false, "with --target: it does not claim to know Idempotency-Keys; it is not asked for duplicates")
	flags.StringVar(&o.history, "history", "", "a folder to keep the history of each cell in, NDJSON; else it goes to a temporary one that is named at the end")
	flags.IntVar(&o.lanes, "lanes", 2, "cells side by side, each lane on servers of its own")
	flags.IntVar(&o.repeat, "repeat", 1, "play each cell of a crowd or a fault so often (--engine local); it is as promised when every play is. The explorer plays once: it has all orders. With --app: the crowds of the rush, 5 unless given")
	flags.StringVar(&o.explain, "explain", "", "cell of an earlier run to explain, for example redis/pause")
	flags.StringVar(&o.from, "from", "", "JSON report for --explain (default the newest in "+matrixResults+")")
	o.app.register(c)
	o.output.register(c)
	return c
}

// ended returns what is called as each cell ends. It prints the cell in a line above the
// table, and writes the report files: who waits sees how far it is, and a run that is
// killed leaves what there was. Where standard output is another format's, the line is
// on standard error if that is a terminal.
func (o *verifyOptions) ended(c *cobra.Command, p *progress) func(last verify.Cell, sofar verify.Report) {
	keeper := matrix.Keeper{Files: o.output.files, Command: c.CommandPath()}
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

// faultHelp says what each fault does, a line each.
func faultHelp() string {
	var b strings.Builder
	for _, f := range fault.All() {
		fmt.Fprintf(&b, "  %-18s %s", f.Name, f.About)
		if f.On != "" {
			b.WriteString("; on " + f.On)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// conditionNames are those of --fault, for a help text.
func conditionNames() string {
	var names []string
	for _, c := range promise.Columns() {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

func (o *verifyOptions) run(c *cobra.Command) (err error) {
	if c.Flags().Changed("explain") || o.from != "" {
		return o.explainCell(c)
	}
	if o.app.file != "" {
		return o.runApp(c)
	}
	if err := errors.Join(o.app.refuse(c), o.checkFronts()); err != nil {
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
	if err := o.output.check(map[string]string{"history": o.history}); err != nil {
		return err
	}
	progress := newProgress(c.ErrOrStderr())
	var names []string
	for _, s := range strategies {
		names = append(names, s.Name)
	}
	cells := matrix.Config{
		Command: typed(c), Strategies: strategies, Faults: faults, Conns: defaultConns, Needs: lockServersOf(names...),
		Ended: o.ended(c, progress), Progress: progress.show, Warn: warnTo(c.ErrOrStderr()),
		SoldOutCheck: o.soldOut, Admission: o.admission == adaptive,
	}
	var report verify.Report
	switch {
	case o.target != "":
		report, err = cells.At(c.Context(), matrix.Service{
			URL: o.target, Token: os.Getenv("SHOP_ADMIN_TOKEN"), Product: o.product, Strategies: o.strategies, NoKeys: o.noKeys,
		})
	case o.race:
		report, err = cells.UnderRace(c.Context(), slices.Contains(o.strategies, "all"), o.raceShop)
	case o.engine == engine.Local:
		report, err = o.local(c, cells)
	default:
		report, err = cells.Embedded(c.Context())
	}
	progress.clear()
	if err == nil && len(report.Cells) == 0 { // a gate that has checked nothing must not be green
		err = errors.New("nothing of this can run here: " + strings.Join(report.LeftOut, "; "))
	}
	if c.Context().Err() != nil || err != nil {
		report.Unfinish(unfinished(c.Context(), err))
	}
	if len(report.Cells) > 0 { // what there is, also after an error
		err = errors.Join(err, o.output.write(c, report))
	}
	if err != nil {
		return err
	}
	return exitOf(report)
}

// checkFronts checks the flags of the sold-out check and of the admission control.
func (o *verifyOptions) checkFronts() error {
	if err := checkAdmission(o.admission); err != nil {
		return err
	}
	if (o.soldOut || o.admission == adaptive) && (o.target != "" || o.race) {
		return fmt.Errorf("--%s and --%s are for shops that verify starts; leave out --target and --race", soldOutCheck, admission)
	}
	return nil
}

// check returns the rows and the columns that are asked for.
func (o *verifyOptions) check(c *cobra.Command) (rows []verify.Strategy, columns []promise.Condition, _ error) {
	if c.Flags().Changed("product") {
		return nil, nil, errors.New("--product is for a --target; else verify sells on servers of its own")
	}
	if o.noKeys {
		return nil, nil, errors.New("--no-idempotency-keys is for a --target; the shop claims them")
	}
	if o.race && (o.quick || c.Flags().Changed("engine")) {
		return nil, nil, errors.New("--race is a run of its own on the embedded engine: it takes no --quick and no --engine")
	}
	if o.quick {
		if c.Flags().Changed("engine") && o.engine != engine.Embedded || c.Flags().Changed("fault") {
			return nil, nil, errors.New("--quick is the explorer and the crowds on the embedded engine: it takes no --engine and no --fault")
		}
		o.engine, o.faults = engine.Embedded, nil
		for _, f := range append(promise.Explorations(), promise.Rush, promise.Units, promise.TwoProducts, promise.Duplicates) {
			o.faults = append(o.faults, string(f))
		}
	}
	if o.engine != engine.Embedded && o.engine != engine.Local {
		return nil, nil, fmt.Errorf("--engine is %q; there are %s and %s", o.engine, engine.Embedded, engine.Local)
	}
	if err := errors.Join(checkLocalDB(o.localDB, o.engine), checkLocalRedis(o.localRedis, o.engine), o.checkRedisWait()); err != nil {
		return nil, nil, err
	}
	if o.lanes < 1 || o.lanes > 16 {
		return nil, nil, fmt.Errorf("--lanes is %d; 1 to 16 are allowed", o.lanes)
	}
	if o.repeat < 1 || o.repeat > 1000 {
		return nil, nil, fmt.Errorf("--repeat is %d; 1 to 1000 are allowed", o.repeat)
	}
	for _, flag := range []string{"repeat", "history", "lanes"} {
		if c.Flags().Changed(flag) && o.engine != engine.Local {
			return nil, nil, fmt.Errorf("--%s is for --engine local", flag)
		}
	}
	rows, err := o.rows()
	if err != nil {
		return nil, nil, err
	}
	faults := promise.Played()
	switch {
	case o.race:
		faults = promise.Watched()
	default:
		faults = append(promise.Explorations(), faults...)
	}
	columns, err = chooseFaults(o.faults, faults)
	return rows, columns, err
}

// checkRedisWait: what replicas change is seen where there are some.
func (o *verifyOptions) checkRedisWait() error {
	if o.redisWait != 0 && (o.localRedis == "" || o.localRedis == topology.Single) {
		return fmt.Errorf("--redis-wait is for --local-redis %s or %s", topology.Sentinel, topology.Cluster)
	}
	return checkRedisWait(o.redisWait)
}

// rows are the strategies that are asked for, of the catalogue and of extra.
func (o *verifyOptions) rows() (rows []verify.Strategy, _ error) {
	catalogue, err := matrix.Catalogue(o.localDB, o.localRedis, o.redisWait > 0)
	if err != nil {
		return nil, err
	}
	known := slices.Concat(o.extra, catalogue)
	var names []string
	for _, s := range known {
		names = append(names, s.Name)
	}
	chosen, err := choose("--strategy", o.strategies, names)
	if err != nil {
		return nil, err
	}
	for _, s := range known {
		if slices.Contains(chosen, s.Name) {
			rows = append(rows, s)
		}
	}
	return rows, nil
}

// chooseFaults picks faults in the order of known.
func chooseFaults(asked []string, known []promise.Condition) (chosen []promise.Condition, _ error) {
	var names []string
	for _, f := range known {
		names = append(names, string(f))
	}
	names, err := choose("--fault", asked, names)
	for _, name := range names {
		chosen = append(chosen, promise.Condition(name))
	}
	return chosen, err
}

// choose picks names in the order of known.
func choose(flag string, asked, known []string) (chosen []string, _ error) {
	if slices.Equal(asked, []string{"all"}) {
		return known, nil
	}
	for _, name := range asked {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s %q is not known; there are %s", flag, name, strings.Join(known, ", "))
		}
	}
	if len(asked) == 0 {
		return nil, fmt.Errorf("%s is empty; give a,b,... or all", flag)
	}
	return slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !slices.Contains(asked, name) }), nil
}

// exitOf is the exit code: a contradiction first, then a cell that the harness failed,
// then one that shows nothing.
func exitOf(r verify.Report) error {
	sorted := r.Sort()
	switch failed := explore.Count(len(sorted.Failed), "cell") + " not judged, by an error of the harness"; {
	case len(sorted.Failed) > 0 && len(sorted.Failed) == len(r.Cells):
		return &exitError{exitHarness, failed}
	case len(sorted.Broken) > 0:
		return &exitError{exitBroken, explore.Count(len(sorted.Broken), "cell") + " not as promised"}
	case len(sorted.Failed) > 0:
		return &exitError{exitBroken, failed}
	case len(sorted.Void) > 0:
		return &exitError{exitInconclusive, explore.Count(len(sorted.Void), "cell") + " inconclusive"}
	}
	return nil
}
