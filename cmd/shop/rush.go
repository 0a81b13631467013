package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// maxBuyers is what one machine's loopback ports and files still carry.
const maxBuyers = 10_000

// rushOptions are the flags of the rush itself.
type rushOptions struct {
	strategies []string
	product    string
	stock      int64
	buyers     int
	processes  int
	target     string
	duration   time.Duration
	restocks   int
	units      []int64
	second     string // product
	expect     bool
	fault      promise.Condition // that strikes each crowd; "" for none

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
	flags.StringSliceVar(&o.strategies, "strategy", []string{"all"}, "strategies by name, a,b,...; or all")
	flags.StringVar(&o.product, "product", purchase.DefaultProduct, "what is sold; its records are cleared")
	flags.Int64Var(&o.stock, "stock", 100, "units put on sale before each strategy")
	flags.IntVar(&o.buyers, "buyers", 200, "buyers, all at once")
	flags.IntVar(&o.processes, "processes", 1, "shop processes behind the rush; buyers are spread over them")
	flags.StringVar(&o.target, "target", "", "a service that runs already: http://host:port; admin token from SHOP_ADMIN_TOKEN")
	flags.DurationVar(&o.duration, "duration", 0, "a steady load for so long instead of a crowd: each buyer asks again when it is answered; give less --stock than is sold meanwhile")
	flags.Int64SliceVar(&o.units, "units", []int64{1}, "units that the buyers ask for, in turn: 1,2,3; none above the stock of a product")
	flags.StringVar(&o.second, "second-product", "", "sold in the same crowd: the buyers ask for the two in turn, and each has half of --stock")
	flags.IntVar(&o.restocks, "restocks", 1, "after a rush that holds, restock and send a small crowd to the same processes, so often")
	flags.StringVar((*string)(&o.fault), "strike", "", "break this in the middle of each crowd: "+strings.Join(strikes(fault.OfRush()), ", ")+", as far as the engine has it")
	flags.BoolVar(&o.expect, "expect", false, "exit 1 when a verdict is not the one promised; of a target's own strategy: that it holds")
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
	o.struckTimes()
	bed, err := o.storefront(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.close()) }()
	names, err := o.names(bed)
	if err != nil {
		return err
	}
	report := o.report(bed)
	started, progress := time.Now(), newProgress(c.ErrOrStderr())
	for _, name := range names {
		result, err := bed.send(c.Context(), o, name, watching{answered: func(n int) { progress.show("%s: %d answered", name, n) }})
		progress.clear()
		report.Strikes = bed.noted.sentences()
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			if len(report.Results) > 0 {
				report.Unfinished = unfinished(c.Context(), err)
				err = errors.Join(err, o.output.write(c, report.Document(started), report.Table)) // what there is
			}
			return err
		}
		report.Results = append(report.Results, result)
	}
	if err := o.output.write(c, report.Document(started), report.Table); err != nil {
		return err
	}
	return o.exit(report)
}

// report is what the results go into.
func (o *rushOptions) report(bed *storefront) rush.Report {
	r := rush.Report{
		Engine: bed.engine, Server: bed.server, Target: o.target, Stock: o.stock, Buyers: o.buyers, Processes: o.processes, Second: o.second, Restocks: o.restocks,
	}
	if !slices.Equal(o.units, []int64{1}) {
		r.Units = o.units
	}
	for _, name := range slices.Sorted(maps.Keys(bed.missing)) {
		if slices.Contains(o.strategies, "all") {
			r.LeftOut = append(r.LeftOut, name+": "+bed.missing[name])
		}
	}
	r.LeftOut = append(r.LeftOut, bed.unused...)
	return r
}

// watching is told how a strategy's crowd gets on; nil functions are not called.
type watching struct {
	answered func(n int)
	judged   func(rush.Result) // the crowd's own result, before the restocks that may follow

	mended  func(context.Context) error // see rush.Config
	leavers *buyers.Leavers             // see rush.Config
	byHand  func() bool                 // somebody has struck this strategy's crowds by hand
}

// rush sends one strategy's crowd.
func (o *rushOptions) rush(ctx context.Context, bed *storefront, name string, watch watching) (rush.Result, error) {
	config := rush.Config{
		BaseURLs: bed.urls, Shelf: bed.target, Auditor: bed.auditor,
		Strategy: name, Product: o.product, Stock: o.stock, Buyers: o.buyers, Sizes: o.units, Duration: o.duration,
		Timeout: o.shops.settings.Wait + 30*time.Second,
		Mended:  watch.mended, Leavers: watch.leavers,
		Progress: func(answered int) {
			if watch.answered != nil {
				watch.answered(answered)
			}
		},
	}
	if o.target == "" { // else these are the service's own, and it does not say
		config.Wait, config.Lease = o.shops.settings.Wait, o.shops.settings.LeaseTTL
	}
	byHand := func() bool { return watch.byHand != nil && watch.byHand() }
	config.Struck, config.Unique = func() bool { return o.fault != "" || byHand() }, byHand
	promised := o.promise(bed, name)
	result, err := o.crowd(ctx, config)
	for n := 1; err == nil && o.expect && n < verdict.Crowds && !byHand() && promised.Misses(result.Verdict); n++ {
		result, err = o.crowd(ctx, config)
	}
	switch {
	case err == nil && byHand(): // at a moment and with leases that no promise is made for
		result.Reason += "; struck by hand: compared with nothing"
		watch.judged(result)
		return result, nil
	case err == nil:
		if watch.judged != nil {
			result.Promise = promised
			watch.judged(result)
		}
		if o.fault != "" {
			config.Lease = max(config.Lease, config.Wait) // what was broken may be kept until then
		}
		config.Struck = nil
		result, err = rush.Restocks(ctx, config, result, o.restocks)
	}
	result.Promise = promised
	if why := o.whyNoPromise(bed, name); promised == "" && why != "" && result.Verdict != verdict.Holds {
		result.Reason += "; no promise is made: " + why
	}
	return result, err
}

// whyNoPromise says why the catalogue has none for this rush; "" where it has one, or does
// not know the strategy.
func (o *rushOptions) whyNoPromise(s *storefront, name string) string {
	entry, ok := lockstrategy.ByName(lockstrategy.Resolve(name))
	if !ok || o.target != "" {
		return ""
	}
	return entry.WhyNoPromise(o.condition(), s.database)
}

// crowd sends it for one product or for two.
func (o *rushOptions) crowd(ctx context.Context, config rush.Config) (rush.Result, error) {
	if o.second == "" {
		return rush.Run(ctx, config)
	}
	return rush.RunProducts(ctx, config, []string{o.product, o.second}, []int64{o.stock - o.stock/2, o.stock / 2})
}

// check checks the flags, of which some have no meaning at a target.
func (o *rushOptions) check(c *cobra.Command) error {
	if err := o.checkCrowd(); err != nil {
		return err
	}
	if o.target == "" {
		if err := o.checkStrike(c); err != nil {
			return err
		}
		return o.checkOwn()
	}
	for _, flag := range []string{
		"engine", "local-db", "db", "redis", "redlock", "zookeeper", "etcd", "db-conns", "processes", "wait", "lease", "poll", "max-inflight", soldOutCheck, admission, "strike",
	} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--target names a service that runs already: --%s has no meaning there", flag)
		}
	}
	var err error
	o.target, err = targetURL(o.target)
	return err
}

// A flagError is of one flag, and says what is wrong with it.
type flagError struct{ name, says string }

func (e *flagError) Error() string { return "--" + e.name + " " + e.says }

func wrongFlag(name, format string, args ...any) error {
	return &flagError{name, fmt.Sprintf(format, args...)}
}

// checkOwn checks what is asked of shops of ours.
func (o *rushOptions) checkOwn() error {
	for _, name := range o.strategies {
		if _, ok := lockstrategy.ByName(lockstrategy.Resolve(name)); !ok && name != "all" {
			return wrongFlag("strategy", "%q is not known; there are %s", name, strings.Join(lockstrategy.Names(), ", "))
		}
	}
	return o.shops.validate()
}

// checkCrowd checks who is sent, wherever it is.
func (o *rushOptions) checkCrowd() error {
	switch {
	case len(o.strategies) == 0 || slices.Contains(o.strategies, ""):
		return wrongFlag("strategy", "has an empty name; give a,b,... or all")
	case slices.Contains(o.strategies, "all") && len(o.strategies) > 1:
		return wrongFlag("strategy", "has all and more; give a,b,... or all")
	case o.stock < 1 || o.stock > product.MaxStock:
		return wrongFlag("stock", "is %d; 1 to %d are allowed", o.stock, product.MaxStock)
	case o.buyers < 1 || o.buyers > maxBuyers:
		return wrongFlag("buyers", "is %d; 1 to %d are allowed", o.buyers, maxBuyers)
	case o.processes < 1 || o.processes > 64:
		return wrongFlag("processes", "is %d; 1 to 64 are allowed", o.processes)
	case o.restocks < 0 || o.restocks > 100:
		return wrongFlag("restocks", "is %d; 0 to 100 are allowed", o.restocks)
	case o.duration < 0 || o.duration > 10*time.Minute:
		return wrongFlag("duration", "is %s; up to 10m is allowed", o.duration)
	}
	seen := map[string]bool{}
	for _, name := range o.strategies {
		if seen[lockstrategy.Resolve(name)] {
			return wrongFlag("strategy", "has %s twice", name)
		}
		seen[lockstrategy.Resolve(name)] = true
	}
	return o.checkOrders()
}

// checkOrders checks what the buyers ask for.
func (o *rushOptions) checkOrders() error {
	if err := product.CheckName(o.product); err != nil {
		return fmt.Errorf("--product %w", err)
	}
	switch {
	case len(o.units) == 0:
		return errors.New("--units is empty; give 1, or 1,2,3")
	case o.duration > 0 && (o.second != "" || len(o.units) > 1 || o.units[0] > 1):
		return errors.New("--duration is for orders of one unit of one product: it takes no --units and no --second-product")
	case o.second == o.product:
		return fmt.Errorf("--second-product is %q, as --product is; give another", o.second)
	case o.second != "" && o.stock < 2:
		return fmt.Errorf("--stock is %d; two products share it, give 2 or more", o.stock)
	}
	if err := o.checkUnits(); err != nil || o.second == "" {
		return err
	}
	if err := product.CheckName(o.second); err != nil {
		return fmt.Errorf("--second-product %w", err)
	}
	return nil
}

// checkUnits: an order for more than there is of a product is never sold, and shows nothing.
func (o *rushOptions) checkUnits() error {
	for _, units := range o.units {
		switch {
		case units < 1 || units > purchase.MaxAmount:
			return fmt.Errorf("--units has %d; 1 to %d are allowed", units, purchase.MaxAmount)
		case o.second == "" && units > o.stock:
			return fmt.Errorf("--units has %d, and --stock is %d; give orders that the stock can serve", units, o.stock)
		case o.second != "" && units > o.stock/2:
			return fmt.Errorf("--units has %d, and each product has half of --stock %d; give orders that it can serve", units, o.stock)
		}
	}
	return nil
}

// promise is the catalogue's for this rush. A target's own word goes first; of a
// strategy that neither knows it is expected that it holds. "" where the
// catalogue says that a run may show it or not.
func (o *rushOptions) promise(s *storefront, name string) verdict.Verdict {
	entry, ok := lockstrategy.ByName(lockstrategy.Resolve(name))
	for _, served := range s.served {
		promised := served.Promise[string(promise.Rush)]
		if served.Name == lockstrategy.Resolve(name) && (promised != "" || ok && len(served.Promise) > 0) {
			return promised // of ours, nothing is a word too: on its database a run may show it or not
		}
	}
	if !ok {
		return verdict.Holds
	}
	return entry.Promised(o.condition(), s.database)
}

// condition is the column of the matrix that this rush is.
func (o *rushOptions) condition() promise.Condition {
	switch {
	case o.fault != "":
		return o.fault
	case o.processes > 1:
		return promise.TwoProcesses
	case slices.ContainsFunc(o.units, func(n int64) bool { return n != o.units[0] }):
		return promise.Units
	case o.second != "":
		return promise.TwoProducts
	}
	return promise.Rush
}

// exit is the command's exit code: a broken promise first, then a proof that
// was none.
func (o *rushOptions) exit(r rush.Report) error {
	var broken, void []string
	for _, result := range r.Results {
		switch {
		case result.Verdict == verdict.Inconclusive:
			void = append(void, result.Strategy)
		case o.expect && result.Promise != "" && !result.Promise.Keeps(result.Verdict):
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
