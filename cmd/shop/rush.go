package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/rush"
	"github.com/oversell/oversell/internal/verdict"
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
	expect     bool
	asJSON     bool

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
--db or --target that is a product of yours: --product says which.

Exit code: 0; with --expect 1 when a verdict breaks its promise; 2 when
something is missing or down; 3 when a result is inconclusive.`,
		Example: `  shop rush
  shop rush --engine local --strategy none,for-update,redis --buyers 1000
  shop rush --processes 2 --expect
  shop rush --strategy conditional --stock 5000 --duration 10s
  shop rush --target http://127.0.0.1:8080 --strategy none,redis`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.strategies, "strategy", []string{"all"}, "strategies by name, a,b,...; or all")
	flags.StringVar(&o.product, "product", purchase.DefaultProduct, "what is sold; its records are cleared")
	flags.Int64Var(&o.stock, "stock", 100, "units put on sale before each strategy")
	flags.IntVar(&o.buyers, "buyers", 200, "buyers, one unit each, all at once")
	flags.IntVar(&o.processes, "processes", 1, "shop processes behind the rush; buyers are spread over them")
	flags.StringVar(&o.target, "target", "", "a service that runs already: http://host:port; admin token from SHOP_ADMIN_TOKEN")
	flags.DurationVar(&o.duration, "duration", 0, "a steady load for so long instead of a crowd: each buyer asks again when it is answered; give less --stock than is sold meanwhile")
	flags.BoolVar(&o.expect, "expect", false, "exit 1 when a verdict is not the one promised; of a target's own strategy: that it holds")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	o.engines.register(c)
	o.shops.register(c)
	return c
}

// run checks everything before it starts anything.
func (o *rushOptions) run(c *cobra.Command) (err error) {
	if err := o.check(c); err != nil {
		return err
	}
	ctx := c.Context()
	stage, err := o.stage(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	names, err := o.names(stage)
	if err != nil {
		return err
	}
	progress := newProgress(c.ErrOrStderr())
	report := rush.Report{
		Engine: stage.engine, Target: o.target, Stock: o.stock, Buyers: o.buyers, Processes: o.processes,
	}
	for _, name := range slices.Sorted(maps.Keys(stage.missing)) {
		if slices.Contains(o.strategies, "all") {
			report.LeftOut = append(report.LeftOut, name+": "+stage.missing[name])
		}
	}
	for _, name := range names {
		result, err := rush.Run(ctx, rush.Config{
			BaseURLs: stage.urls, Shelf: stage.target, Auditor: stage.books,
			Strategy: name, Product: o.product, Stock: o.stock, Buyers: o.buyers, Duration: o.duration,
			Timeout:  o.shops.settings.Wait + 30*time.Second,
			Progress: func(answered int) { progress.show("%s: %d answered", name, answered) },
		})
		progress.clear()
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			if len(report.Results) > 0 {
				err = errors.Join(err, o.print(c.OutOrStdout(), report)) // what there is
			}
			return err
		}
		result.Promise = o.promise(stage, name)
		report.Results = append(report.Results, result)
	}
	if err := o.print(c.OutOrStdout(), report); err != nil {
		return err
	}
	return o.exit(report)
}

func (o *rushOptions) check(c *cobra.Command) error {
	switch {
	case len(o.strategies) == 0 || slices.Contains(o.strategies, ""):
		return errors.New("--strategy has an empty name; give a,b,... or all")
	case slices.Contains(o.strategies, "all") && len(o.strategies) > 1:
		return errors.New("--strategy has all and more; give a,b,... or all")
	case o.stock < 1 || o.stock > product.MaxStock:
		return fmt.Errorf("--stock is %d; 1 to %d are allowed", o.stock, product.MaxStock)
	case o.buyers < 1 || o.buyers > maxBuyers:
		return fmt.Errorf("--buyers is %d; 1 to %d are allowed", o.buyers, maxBuyers)
	case o.processes < 1 || o.processes > 64:
		return fmt.Errorf("--processes is %d; 1 to 64 are allowed", o.processes)
	case o.duration < 0 || o.duration > 10*time.Minute:
		return fmt.Errorf("--duration is %s; up to 10m is allowed", o.duration)
	}
	seen := map[string]bool{}
	for _, name := range o.strategies {
		if seen[lockstrategy.Resolve(name)] {
			return fmt.Errorf("--strategy has %s twice", name)
		}
		seen[lockstrategy.Resolve(name)] = true
	}
	if err := product.CheckName(o.product); err != nil {
		return fmt.Errorf("--product %w", err)
	}
	if o.target == "" {
		for _, name := range o.strategies {
			if _, ok := lockstrategy.ByName(lockstrategy.Resolve(name)); !ok && name != "all" {
				return fmt.Errorf("--strategy %q is not known; there are %s", name, strings.Join(lockstrategy.Names(), ", "))
			}
		}
		return o.shops.check()
	}
	for _, flag := range []string{
		"engine", "db", "redis", "redlock", "zookeeper", "etcd", "db-conns", "processes", "wait", "lease", "poll", "max-inflight",
	} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--target names a service that runs already: --%s has no meaning there", flag)
		}
	}
	var err error
	o.target, err = targetURL(o.target)
	return err
}

// A stage is where the rush takes place: the shop's processes and their books.
type stage struct {
	engine   string
	database string   // "mysql", "sqlite"; "" at a target
	urls     []string // one a process
	target   rush.Target
	books    rush.Auditor
	missing  map[string]string     // strategies that cannot run here, and why
	served   []rush.TargetStrategy // what a target says of its own
	closers  []func() error
}

func (s *stage) close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// stage opens the target, or the engine with a shop of this process, or with
// --processes children of it.
func (o *rushOptions) stage(c *cobra.Command) (*stage, error) {
	s := &stage{engine: "target", missing: map[string]string{}}
	if o.target != "" {
		s.at(o.target, os.Getenv("SHOP_ADMIN_TOKEN"))
		s.books = s.target
		served, err := s.target.Strategies(c.Context())
		if err != nil {
			return nil, fmt.Errorf("--target: nobody answers: %w", err)
		}
		s.served = served
		return s, nil
	}
	config, err := o.engines.config(c, o.shops.settings)
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(c.Context(), config)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, e.Close)
	for _, warning := range e.Warnings {
		fmt.Fprintln(c.ErrOrStderr(), "shop: warning: "+warning)
	}
	s.engine, s.database, s.books = e.Name, e.DB.Name(), rush.Database{DB: e.DB}
	s.missing = lockstrategy.AllMissing(onengine.Deps(e))
	shops := o.shops
	shops.maxInflight = max(shops.maxInflight, o.buyers) // the crowd is meant to get in
	if o.processes == 1 {
		err = s.serveHere(e, shops)
	} else {
		err = s.serveChildren(c.Context(), e, shops, o.processes)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// at adds one process's address.
func (s *stage) at(base, token string) {
	s.urls = append(s.urls, base)
	s.target = rush.Target{BaseURL: s.urls[0], Token: token, Client: &http.Client{}}
}

// serveHere serves in this process, on a real listener.
func (s *stage) serveHere(e *engine.Engine, flags shopFlags) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	shop := newShop(e, flags, slog.New(slog.DiscardHandler))
	server := shop.server(l.Addr(), "")
	stop := shop.work(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	s.closers = append(s.closers, func() error {
		defer stop()
		ctx, cancel := context.WithTimeout(context.Background(), shutdownPatience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			return errors.Join(err, server.Close())
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	s.at("http://"+l.Addr().String(), "")
	return nil
}

// names are the strategies to run, in the order asked for or of the catalogue.
func (o *rushOptions) names(s *stage) ([]string, error) {
	if !slices.Contains(o.strategies, "all") {
		var names []string
		for _, name := range o.strategies {
			if o.target == "" {
				name = lockstrategy.Resolve(name)
			} else if err := s.serves(name); err != nil {
				return nil, err
			}
			if why := s.missing[name]; why != "" {
				return nil, fmt.Errorf("strategy %s: %s", name, why)
			}
			names = append(names, name)
		}
		return names, nil
	}
	if o.target != "" {
		var names []string
		for _, served := range s.served {
			if served.CanRun() {
				names = append(names, served.Name)
			} else {
				s.missing[served.Name] = served.Reason
			}
		}
		if names != nil {
			return names, nil
		}
		return nil, fmt.Errorf("%s does not list its strategies at /strategies; name them with --strategy a,b", o.target)
	}
	return slices.DeleteFunc(lockstrategy.Names(), func(name string) bool { return s.missing[name] != "" }), nil
}

// serves refuses a name that the target does not list, where it lists any.
func (s *stage) serves(name string) error {
	var names []string
	for _, served := range s.served {
		if served.Name == lockstrategy.Resolve(name) {
			if !served.CanRun() {
				return fmt.Errorf("strategy %s cannot run there: %s", name, served.Reason)
			}
			return nil
		}
		names = append(names, served.Name)
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("--strategy %q is not known there; the target has %s", name, strings.Join(names, ", "))
}

// promise is the catalogue's for this rush. A target's own word goes first; of a
// strategy that neither knows it is expected that it holds. "" where the
// catalogue says that a run may show it or not.
func (o *rushOptions) promise(s *stage, name string) verdict.Verdict {
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
	if o.processes > 1 {
		return entry.Promised(promise.TwoProcesses, s.database)
	}
	return entry.Promised(promise.Rush, s.database)
}

func (o *rushOptions) print(w io.Writer, r rush.Report) error {
	if o.asJSON {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	return r.Table(w, isTerminal(w) && os.Getenv("NO_COLOR") == "")
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

// progress is one line that is written again and again, on a terminal only.
type progress struct {
	w    io.Writer
	last time.Time
}

func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		return &progress{}
	}
	return &progress{w: w}
}

func (p *progress) show(format string, args ...any) {
	if p.w == nil || time.Since(p.last) < 50*time.Millisecond {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
