package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/rush"
	"github.com/oversell/oversell/internal/verdict"
	"github.com/oversell/oversell/internal/verify"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	strategies []string
	faults     []string
	quick      bool
	engine     string
	target     string
	product    string
	history    string
	lanes      int
	repeat     int
	reports    []reportFile
	launch     fault.Launch      // the shops under test; tests have others
	extra      []verify.Strategy // rows beside the catalogue's; of tests
}

func verifyCommand() *cobra.Command {
	o := verifyOptions{launch: ownShop, reports: []reportFile{
		{flag: "json", what: "JSON", write: verify.Report.JSON},
		{flag: "junit", what: "JUnit XML with a case a cell", write: verify.Report.JUnit},
		{flag: "markdown", what: "Markdown for a CI step's summary", write: verify.Report.Markdown},
		{flag: "html", what: "one HTML page", write: htmlPage},
	}}
	c := &cobra.Command{
		Use:   "verify",
		Short: "Strike every strategy with every fault; show which promises hold",
		Long: `Strike every strategy with every fault on real servers, and compare what came
of it with what the catalogue promises.

The faults need servers that can be killed: --engine local starts them. On the
embedded engine the explorer runs instead, with and without events, and the two
rushes; --quick is the explorer and one rush, for every push.

--target verifies a service that runs already, in whatever language, by what its
buyers do: they rush, hang up, come over a slow way, and send a request twice.
loadtest/README.md has the routes. A strategy that makes no promise is expected
to hold.

Exit code: 0 all as promised; 1 a cell contradicts its promise; 2 when something
is missing or down; 3 when a cell has shown nothing.`,
		Example: `  shop verify --engine local
  shop verify --quick --junit verify.xml
  shop verify --engine local --strategy redis,fenced --fault pause,redis-restart
  shop verify --engine local --fault db-kill --repeat 50
  shop verify --engine local --html matrix.html --markdown matrix.md
  shop verify --target http://127.0.0.1:9000 --strategy my-lock`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", []string{"all"}, "strategies by name, a,b,...; or all")
	flags.StringSliceVar(&o.faults, "fault", []string{"all"}, "faults by name, a,b,...; or all")
	flags.BoolVar(&o.quick, "quick", false, "the explorer and the rush, on the embedded engine")
	flags.StringVar(&o.engine, "engine", engine.Embedded, "embedded (the explorer and the rushes) or local (every fault)")
	flags.StringVar(&o.target, "target", "", "a service that runs already, in whatever language: http://host:port; admin token from SHOP_ADMIN_TOKEN")
	flags.StringVar(&o.product, "product", purchase.DefaultProduct, "with --target: what is sold; its records are cleared")
	flags.StringVar(&o.history, "history", "", "a folder to keep the history of each cell in, NDJSON; else it goes to a temporary one that is named at the end")
	flags.IntVar(&o.lanes, "lanes", 2, "cells side by side, each lane on servers of its own")
	flags.IntVar(&o.repeat, "repeat", 1, "play each cell so often (--engine local); it is as promised when every play is")
	for i := range o.reports {
		flags.StringVar(&o.reports[i].path, o.reports[i].flag, "", "a file for the report as "+o.reports[i].what+"; - is the terminal")
	}
	return c
}

// ownShop is this very program as a shop with failpoints.
func ownShop(times fault.Times) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, "serve", "--failpoints", "--addr", "127.0.0.1:0", "--log-level", "error",
		"--wait", times.Wait.String(), "--lease", times.Lease.String())
	cmd.Stderr = os.Stderr
	return cmd
}

func (o *verifyOptions) run(c *cobra.Command) (err error) {
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
	if err := o.checkReports(); err != nil {
		return err
	}
	progress := newProgress(c.ErrOrStderr())
	var report verify.Report
	switch {
	case o.target != "":
		report, err = o.atTarget(c, faults, progress)
	case o.engine == engine.Local:
		report, err = o.local(c, strategies, faults, progress)
	default:
		report, err = o.embedded(c, strategies, faults, progress)
	}
	progress.clear()
	switch {
	case c.Context().Err() != nil:
		report.Unfinish("it was interrupted")
	case err != nil:
		report.Unfinish(oneLine(err))
	}
	if len(report.Cells) > 0 { // what there is, also after an error
		err = errors.Join(err, o.print(c, report))
	}
	if err != nil {
		return err
	}
	return exitOf(report)
}

// check returns the rows and the columns that are asked for.
func (o *verifyOptions) check(c *cobra.Command) (rows []verify.Strategy, columns []promise.Condition, _ error) {
	if c.Flags().Changed("product") {
		return nil, nil, errors.New("--product is for a --target; else verify sells on servers of its own")
	}
	if o.quick {
		if c.Flags().Changed("engine") && o.engine != engine.Embedded || c.Flags().Changed("fault") {
			return nil, nil, errors.New("--quick is the explorer and the rush on the embedded engine: it takes no --engine and no --fault")
		}
		o.engine, o.faults = engine.Embedded, nil
		for _, f := range append(promise.Explorations(), promise.Rush) {
			o.faults = append(o.faults, string(f))
		}
	}
	if o.engine != engine.Embedded && o.engine != engine.Local {
		return nil, nil, fmt.Errorf("--engine is %q; there are %s and %s", o.engine, engine.Embedded, engine.Local)
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
	known := slices.Clone(o.extra)
	for _, e := range lockstrategy.All() {
		known = append(known, verify.FromCatalogue(e))
	}
	var names []string
	for _, s := range known {
		names = append(names, s.Name)
	}
	chosen, err := choose("--strategy", o.strategies, names)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range known {
		if slices.Contains(chosen, s.Name) {
			rows = append(rows, s)
		}
	}
	faults := promise.Played()
	if o.engine == engine.Embedded {
		faults = append(promise.Explorations(), faults...)
	}
	columns, err = chooseFaults(o.faults, faults)
	return rows, columns, err
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

// local plays all cells on servers of this command's own.
func (o *verifyOptions) local(c *cobra.Command, strategies []verify.Strategy, faults []promise.Condition, p *progress) (verify.Report, error) {
	kept, made, err := o.folder() // before a server is started
	if err != nil {
		return verify.Report{}, err
	}
	report, err := verify.Run(c.Context(), verify.Config{
		Strategies: strategies, Faults: faults, Launch: o.launch, Times: fault.DefaultTimes(), History: kept, Lanes: o.lanes, Repeat: o.repeat,
		Progress: func(done, all int, last verify.Cell) {
			p.show("%d of %d cells, %d left; last %s under %s: %s", done, all, all-done, last.Strategy, last.Fault, last.Verdict)
		},
	})
	switch {
	case len(report.Cells) > 0:
		fmt.Fprintln(c.ErrOrStderr(), "histories: "+kept)
	case made: // what is in it is of cells that were begun
		err = errors.Join(err, os.RemoveAll(kept))
	}
	return report, err
}

// folder is where the histories go. made tells whether it was not there before.
func (o *verifyOptions) folder() (path string, made bool, err error) {
	if o.history == "" {
		path, err = os.MkdirTemp("", "shop-verify-")
		return path, true, err
	}
	_, err = os.Stat(o.history)
	made = errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(o.history, 0o755); err != nil {
		return "", false, fmt.Errorf("--history: %w", err)
	}
	f, err := os.CreateTemp(o.history, ".verify-")
	if err != nil {
		return "", false, fmt.Errorf("--history %s: no file can be made there: %w", o.history, errors.Unwrap(err))
	}
	return o.history, made, errors.Join(f.Close(), os.Remove(f.Name()))
}

// embedded runs the explorer and the two rushes on the embedded engine, where
// there is nothing to kill.
func (o *verifyOptions) embedded(c *cobra.Command, strategies []verify.Strategy, faults []promise.Condition, p *progress) (verify.Report, error) {
	report := verify.Report{Engine: engine.Embedded, Started: time.Now()}
	err := o.explorations(c, strategies, faults, &report, p)
	for _, f := range faults {
		processes := map[promise.Condition]int{promise.Rush: 1, promise.TwoProcesses: 2}[f]
		switch {
		case err != nil || slices.Contains(promise.Explorations(), f):
		case processes == 0:
			report.LeaveOut(string(f) + ": it needs servers that can be killed, --engine local")
		default:
			err = o.rushes(c, f, processes, strategies, &report, p)
		}
	}
	if err == nil && len(report.Cells) == 0 {
		err = errors.New("nothing of this can run on the embedded engine; use --engine local")
	}
	report.Finish()
	return report, err
}

// explorations plays the explorer's cells, one after the other: it looks at every
// goroutine of the process.
func (o *verifyOptions) explorations(c *cobra.Command, strategies []verify.Strategy, faults []promise.Condition, report *verify.Report, p *progress) (err error) {
	faults = slices.DeleteFunc(slices.Clone(faults), func(f promise.Condition) bool { return !slices.Contains(promise.Explorations(), f) })
	if len(faults) == 0 {
		return nil
	}
	e, err := engine.Open(c.Context(), engine.Config{Name: engine.Embedded, Wait: exploreWait, Conns: defaultConns})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for _, s := range strategies {
		entry, ok := lockstrategy.ByName(s.Name)
		if why := entry.Missing(onengine.Deps(e)); !ok || why != "" {
			report.LeaveOut(s.Name + ": " + why)
			continue
		}
		for _, f := range faults {
			promised, possible := entry.Explored(f, e.DB.Name())
			switch {
			case !possible:
				continue
			case entry.NotExplored[f] != "":
				report.LeaveOut(s.Name + " under " + string(f) + ": " + entry.NotExplored[f])
				continue
			}
			cell, err := verify.Explore(c.Context(), e, entry, f, promised)
			if err != nil {
				return fmt.Errorf("%s under %s: %w", s.Name, f, err)
			}
			report.Cells = append(report.Cells, cell)
			p.show("%d cells; last %s under %s: %s", len(report.Cells), s.Name, f, cell.Verdict)
		}
	}
	return nil
}

func (o *verifyOptions) rushes(c *cobra.Command, f promise.Condition, processes int, strategies []verify.Strategy, report *verify.Report, p *progress) (err error) {
	crowd := rushOptions{processes: processes, buyers: 200}
	crowd.engines.name, crowd.engines.conns = engine.Embedded, defaultConns
	crowd.shops = shopFlags{settings: lockstrategy.DefaultSettings(), maxInflight: 2_000}
	stage, err := crowd.stage(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	for _, s := range strategies {
		if why := stage.missing[s.Name]; why != "" {
			report.LeaveOut(s.Name + ": " + why)
			continue
		}
		result, err := rush.Run(c.Context(), verify.RushConfig(stage.urls, stage.target, stage.books, s.Name, crowd.shops.settings.Wait))
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		var promised verdict.Verdict
		if entry, ok := lockstrategy.ByName(s.Name); ok {
			promised = entry.Promised(f, stage.database)
		}
		report.Cells = append(report.Cells, verify.RushCell(s.Name, f, promised, engine.Embedded, result, processes))
		p.show("%d of %d strategies; last %s under %s: %s", len(report.Cells), len(strategies), s.Name, f, result.Verdict)
	}
	return nil
}

// exitOf is the exit code: a contradiction first, then a cell that shows nothing.
func exitOf(r verify.Report) error {
	broken, void := r.Broken()
	if len(broken) > 0 {
		return &exitError{exitBroken, explore.Count(len(broken), "cell") + " not as promised"}
	}
	if len(void) > 0 {
		return &exitError{exitInconclusive, explore.Count(len(void), "cell") + " inconclusive"}
	}
	return nil
}
