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
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/purchase"
)

// rushOptions are the flags of rush.
type rushOptions struct {
	trial.Crowd
	output  output
	engines engineFlags
	shops   shopFlags
}

func rushCommand() *cobra.Command {
	var o rushOptions
	c := &cobra.Command{
		Use:   "rush",
		Short: "Send a crowd at once; show what is left and what was recorded",
		Long: `Send a crowd of buyers at once, over HTTP, for each strategy in turn, and
compare what they were told with what the database holds.

Before each strategy the product is restocked, which clears its records. With
--db or --target that is a product of yours: --product says which. A strategy that
holds is restocked once more and sold out again by a small crowd (--restocks).

With --strike something breaks in the middle of each crowd, while one of its
buyers is about to write. The shops are processes of their own then, with the
short leases of shop verify, and what holds without a proof that it was struck
is inconclusive. A strategy that uses nothing of what breaks is left out.

Exit code: 0; with --expect 1 when a verdict breaks its promise; 2 when
something is missing or down; 3 when a result is inconclusive.`,
		Example: `  shop rush
  shop rush --engine local --strategy none,for-update,redis --buyers 1000
  shop rush --engine local --local-db postgres --expect
  shop rush --engine local --local-db galera --processes 2
  shop rush --processes 2 --expect
  shop rush --strategy redis --processes 2 --strike pause --expect
  shop rush --units 1,2,3 --second-product pear
  shop rush --strategy conditional --stock 5000 --duration 10s
  shop rush --target http://127.0.0.1:8080 --strategy none,redis`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.Strategies, "strategy", []string{"all"}, "strategies by name, a,b,...; or all")
	flags.StringVar(&o.Product, "product", purchase.DefaultProduct, "what is sold; its records are cleared")
	flags.Int64Var(&o.Stock, "stock", 100, "units put on sale before each strategy")
	flags.IntVar(&o.Buyers, "buyers", 200, "buyers, all at once")
	flags.IntVar(&o.Processes, "processes", 1, "shop processes behind the rush; buyers are spread over them")
	flags.StringVar(&o.Target, "target", "", "a service that runs already: http://host:port; admin token from SHOP_ADMIN_TOKEN")
	flags.DurationVar(&o.Duration, "duration", 0, "a steady load for so long instead of a crowd: each buyer asks again when it is answered; give less --stock than is sold meanwhile")
	flags.Int64SliceVar(&o.Units, "units", []int64{1}, "units that the buyers ask for, in turn: 1,2,3; none above the stock of a product")
	flags.StringVar(&o.Second, "second-product", "", "sold in the same crowd: the buyers ask for the two in turn, and each has half of --stock")
	flags.IntVar(&o.Restocks, "restocks", 1, "after a rush that holds, restock and send a small crowd to the same processes, so often")
	flags.StringVar((*string)(&o.Fault), "strike", "", "break this in the middle of each crowd: "+strings.Join(trial.FaultNames(fault.OfRush()), ", ")+", as far as the engine has it")
	flags.BoolVar(&o.Expect, "expect", false, "exit 1 when a verdict is not the one promised; of a target's own strategy: that it holds")
	o.output.register(c)
	o.engines.register(c)
	o.shops.register(c, false) // it would answer in place of the strategies that are judged
	return c
}

// run checks everything before it starts anything.
func (o *rushOptions) run(c *cobra.Command) (err error) {
	if err := o.check(c); err != nil {
		return err
	}
	if err := o.output.check(nil); err != nil {
		return err
	}
	o.Shops = o.shops.Config
	o.StrikeTimes()
	var config engine.Config
	if o.Target == "" {
		if config, err = o.engines.config(c, o.Shops.Settings); err != nil {
			return err
		}
		if o.Fault == "" { // else a server that is not there is an answer
			config.Needs = lockServersOf(o.Strategies...)
		}
	}
	front, err := trial.Open(c.Context(), &o.Crowd, config, os.Getenv("SHOP_ADMIN_TOKEN"), warnTo(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, front.Close()) }()
	reopen := func() error {
		left := front
		front = &trial.Storefront{}
		_ = left.Close() // a leftover lock or Buy may make the shop's shutdown fail
		opened, err := trial.Open(c.Context(), &o.Crowd, config, os.Getenv("SHOP_ADMIN_TOKEN"), warnTo(c.ErrOrStderr()))
		if err == nil {
			front = opened
		}
		return err
	}
	names, err := o.Names(front)
	if err != nil {
		return err
	}
	report := o.Report(front)
	started, progress := time.Now(), newProgress(c.ErrOrStderr())
	for i, name := range names {
		result, err := front.Send(c.Context(), &o.Crowd, name, trial.Watching{Answered: func(n int) { progress.show("%s: %d answered", name, n) }})
		progress.clear()
		report.Strikes = front.Strikes()
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			if len(report.Results) > 0 {
				report.Unfinished = unfinished(c.Context(), err)
				err = errors.Join(err, o.output.write(c, report.Document(started), report.Table)) // what there is
			}
			return err
		}
		report.Results = append(report.Results, result)
		if result.LeftBehind() && i+1 < len(names) {
			if err := reopen(); err != nil {
				return err
			}
		}
	}
	if err := o.output.write(c, report.Document(started), report.Table); err != nil {
		return err
	}
	return o.exit(report)
}

// warnTo prints warnings.
func warnTo(w io.Writer) func(string) {
	return func(warning string) { fmt.Fprintln(w, "shop: warning: "+warning) }
}

// check checks the flags, of which some have no meaning at a target or with a fault.
func (o *rushOptions) check(c *cobra.Command) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.Target == "" {
		if err := o.checkStrike(c); err != nil {
			return err
		}
		return cmp.Or(o.CheckNames(), o.shops.validate())
	}
	for _, flag := range []string{
		"engine", "local-db", "db", "redis", "redlock", "zookeeper", "etcd", "db-conns", "processes", "wait", "lease", "poll", "max-inflight", soldOutCheck, admission, "strike",
	} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--target names a service that runs already: --%s has no meaning there", flag)
		}
	}
	var err error
	o.Target, err = targetURL(o.Target)
	return err
}

// checkStrike checks --strike.
func (o *rushOptions) checkStrike(c *cobra.Command) error {
	if !c.Flags().Changed("strike") {
		return nil
	}
	if o.Fault == "" {
		return fmt.Errorf("--strike %q is not known; there are %s", o.Fault, strings.Join(trial.FaultNames(fault.OfRush()), ", "))
	}
	if err := o.CheckFault(); err != nil {
		return err
	}
	for _, flag := range []string{"duration", "units", "second-product"} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--strike breaks a crowd of one product and one unit a buyer: --%s has no meaning there", flag)
		}
	}
	for _, flag := range []string{"wait", "lease"} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--strike sets the times that its promises are made for: --%s has no meaning there", flag)
		}
	}
	return nil
}

// exit is the command's exit code: a broken promise first, then a proof that
// was none.
func (o *rushOptions) exit(r rush.Report) error {
	var broken, void []string
	for _, result := range r.Results {
		switch {
		case result.Verdict == verdict.Inconclusive:
			void = append(void, result.Strategy)
		case o.Expect && result.Promise != "" && !result.Promise.Keeps(result.Verdict):
			broken = append(broken, fmt.Sprintf("%s was promised as %s and is %s", result.Strategy, result.Promise, result.Verdict))
		}
	}
	if len(broken) > 0 {
		return &exitError{exitBroken, strings.Join(broken, "; ")}
	}
	if len(void) > 0 {
		return &exitError{exitInconclusive, "inconclusive: " + strings.Join(void, ", ")}
	}
	return nil
}
