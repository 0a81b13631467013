package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

type rushOptions struct {
	trial.Crowd
	output  output
	engines engineFlags
	shops   shopFlags
}

// Help texts and errors that several commands share.
const (
	strategyUsage = "strategy `names`, comma-separated, or all"
	targetUsage   = "`URL` of a running service to test [admin token: SHOP_ADMIN_TOKEN]"
	roundUsage    = "length of one measurement, including a warm-up of one third"
	notWithTarget = "cannot be combined with --target, which names a running service"
)

func rushCommand() *cobra.Command {
	var o rushOptions
	c := &cobra.Command{
		Use:   "rush",
		Short: "Send many buyers at once and compare the answers with the database",
		Long: `Send many buyers at once over HTTP, for each strategy in turn, and compare their answers with the
database. Each run restocks the product, which deletes its records: choose --product with --db or
--target. --strike injects a fault while a buyer is about to write. --for repeats the bursts with
changing numbers of buyers and judges each; a row of the table shows the worst verdict.

Exit codes: 0 done, 1 a promise is broken (with --expect), 2 error, 3 a result is inconclusive.`,
		Example: `  shop rush --strategy none,redis --buyers 1000 --engine local
  shop rush --strategy redis --processes 2 --strike pause --expect`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.Strategies, "strategy", []string{"all"}, strategyUsage)
	flags.StringVar(&o.Product, "product", purchase.DefaultProduct, "`name` of the product; each run deletes its records")
	flags.Int64Var(&o.Stock, "stock", 100, "units on sale before each strategy")
	flags.IntVar(&o.Buyers, "buyers", 200, "number of buyers, all at once")
	flags.IntVar(&o.Processes, "processes", 1, "number of shop processes")
	flags.StringVar(&o.Target, "target", "", targetUsage)
	flags.DurationVar(&o.Duration, "duration", 0, "length of a steady load instead of one burst")
	flags.DurationVar(&o.For, "for", 0, "length of a long rush of repeated bursts, 1s to 24h")
	flags.DurationVar(&o.Every, "kill", 0, "interval between kills of a shop process, with --for")
	flags.Int64SliceVar(&o.Units, "units", []int64{1}, "`units` per order; with 1,2,3: by turns")
	flags.StringVar(&o.Second, "second-product", "", "`name` of a second product, with half of --stock")
	flags.IntVar(&o.Restocks, "restocks", 1, "number of restocks, each with a small burst, after a successful rush")
	flags.StringVar((*string)(&o.Fault), "strike", "", "`fault` during each burst; list: shop help faults")
	flags.BoolVar(&o.Expect, "expect", false, "exit code 1 when a verdict breaks its promise")
	o.output.register(c)
	o.engines.register(c)
	o.shops.register(c, false)
	setHelp(c, "docs/tutorial/first-hour.md", "strategy", "buyers", "engine", "expect", "report")
	return c
}

// run checks all flags before it starts anything.
func (o *rushOptions) run(c *cobra.Command) error {
	if err := o.check(c); err != nil {
		return err
	}
	o.Shops = o.shops.Config
	o.StrikeTimes()
	var config engine.Config
	var err error
	if o.Target == "" {
		if config, err = o.engines.config(c, o.Shops.Settings); err != nil {
			return err
		}
		config.Needs = lockstrategy.LockServers(o.Strategies...)
	}
	started, progress := time.Now(), newProgress(c.ErrOrStderr())
	report, closed, err := o.Play(c.Context(), config, os.Getenv("SHOP_ADMIN_TOKEN"), trial.Telling{
		Answered: func(w trial.Wave, n int) { progress.show("%s: %d answered", o.title(w, started), n) },
		Ended: func(w trial.Wave, r rush.Result) {
			progress.clear()
			if o.For > 0 && r.BreaksPromise() {
				fmt.Fprintf(c.ErrOrStderr(), "shop: %s of %s: promised %s, seen %s: %s\n", w, w.Strategy, r.Promise, r.Verdict, r.Reason)
			}
		},
		Warn: warnTo(c.ErrOrStderr()),
	})
	if err != nil && len(report.Results) == 0 {
		return errors.Join(err, closed)
	}
	if o.For > 0 {
		report.For = shown(o.For)
	}
	if err != nil {
		report.Unfinished = unfinished(c.Context(), err)
	}
	if err := errors.Join(err, o.output.write(c, report.Document(started), report.Table)); err != nil {
		return errors.Join(err, closed)
	}
	return errors.Join(o.exit(report), closed)
}

// title returns the text about a burst in the progress line.
func (o *rushOptions) title(w trial.Wave, started time.Time) string {
	if o.For == 0 {
		return w.Strategy
	}
	return fmt.Sprintf("%s of %s: %s: %s", time.Since(started).Round(time.Second), shown(o.For), w, w.Strategy)
}

func warnTo(w io.Writer) func(string) {
	return func(warning string) { fmt.Fprintln(w, "shop: warning: "+warning) }
}

// check checks the flags, including those that cannot be combined with --target or --strike.
func (o *rushOptions) check(c *cobra.Command) error {
	if err := cmp.Or(o.Check(), o.checkFor(c)); err != nil {
		return err
	}
	if o.Target == "" {
		if err := o.checkStrike(c); err != nil {
			return err
		}
		return cmp.Or(o.CheckNames(), o.shops.validate())
	}
	if err := rejectFlags(c, notWithTarget,
		"engine", "local-db", "db", "redis", "redlock", "zookeeper", "etcd", "db-conns", "processes", "wait", "lease", "poll", "max-inflight", soldOutCheck, admission, "strike", "kill",
	); err != nil {
		return err
	}
	var err error
	o.Target, err = trial.ServiceURL("target", o.Target)
	return err
}

func (o *rushOptions) checkFor(c *cobra.Command) error {
	if c.Flags().Changed("for") {
		if err := checkRange("for", o.For, time.Second, 24*time.Hour); err != nil {
			return err
		}
	}
	switch {
	case !c.Flags().Changed("kill"):
		return nil
	case o.For == 0:
		return errors.New("--kill requires --for")
	}
	return checkRange("kill", o.Every, time.Second, o.For)
}

func (o *rushOptions) checkStrike(c *cobra.Command) error {
	by := "--strike"
	switch {
	case o.Every > 0:
		if err := rejectFlags(c, "cannot be combined with --kill, which injects the fault crash", "strike"); err != nil {
			return err
		}
		by, o.Fault = "--kill", promise.Crash
	case !c.Flags().Changed("strike"):
		return nil
	case o.Fault == "":
		return errors.New("--strike needs a fault; list them with: shop help faults")
	}
	return cmp.Or(o.CheckFault(),
		rejectFlags(c, "cannot be combined with "+by+": the burst has one product, and each buyer asks for one unit", "duration", "units", "second-product"),
		rejectFlags(c, "cannot be combined with "+by+", which sets the times that its promises apply to", "wait", "lease"))
}

// exit returns an error with the exit code. A broken promise takes precedence over an inconclusive result.
func (o *rushOptions) exit(r rush.Report) error {
	broken, void := rush.Contradictions(r.Results)
	if o.Expect && len(broken) > 0 {
		return &exitError{exitBroken, strings.Join(broken, "; ")}
	}
	if len(void) > 0 {
		return &exitError{exitInconclusive, "inconclusive: " + strings.Join(void, ", ")}
	}
	return nil
}
