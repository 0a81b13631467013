package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/web"
)

// A storefront is where a crowd buys: the shop's processes, or a target.
type storefront struct {
	engine   string
	database string   // as the promises name it; "" at a target
	server   string   // as the database names itself; "" at a target
	urls     []string // one a process
	target   rush.Target
	auditor  rush.Auditor
	missing  map[string]string     // strategies that cannot run here, and why
	unused   []string              // a line of those that the rush's fault would not strike
	served   []rush.TargetStrategy // what a target says of its own
	closers  []func() error

	// restart kills the first process and starts another in its place; nil where the
	// shop is not a process of its own. It returns the address.
	restart func(context.Context) (url string, err error)

	// children are the shop's processes; nil where it is not a process of its own.
	children testbed.Shops

	struck *crowds // that a fault strikes; nil: nothing breaks
	noted  noted   // what struck them
}

// send sends one strategy's crowd.
func (s *storefront) send(ctx context.Context, o *rushOptions, name string, watch watching) (rush.Result, error) {
	if s.struck != nil {
		return s.struck.send(ctx, name, watch)
	}
	return o.rush(ctx, s, name, watch)
}

func (s *storefront) close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// storefront opens the target, or the engine with a shop of this process, or with
// --processes children of it.
func (o *rushOptions) storefront(c *cobra.Command) (*storefront, error) {
	s := &storefront{engine: "target", missing: map[string]string{}}
	if o.target != "" {
		s.at(o.target, os.Getenv("SHOP_ADMIN_TOKEN"))
		s.auditor = s.target
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
	warnings := e.Warnings
	if warning := warnOfReplicas(c.Context(), e, o.shops.settings.Replicas); warning != "" {
		warnings = append(warnings, warning)
	}
	for _, warning := range warnings {
		fmt.Fprintln(c.ErrOrStderr(), "shop: warning: "+warning)
	}
	shops, err := o.on(s, e)
	if err == nil {
		err = o.canStrike(e)
	}
	switch {
	case err != nil:
	case o.fault != "":
		s.struck = &crowds{engine: e, rush: o, bed: s, to: &s.noted, ctx: c.Context()}
		err = s.serveChildren(c.Context(), e, shops, o.processes, s.struck.record)
	case o.processes == 1:
		err = s.serveHere(e, shops)
	default:
		err = s.serveChildren(c.Context(), e, shops, o.processes, nil)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// on puts the storefront on an open engine, without a shop, and returns the flags of the
// shops that the crowd is to be sent to.
func (o *rushOptions) on(s *storefront, e *engine.Engine) (shopFlags, error) {
	s.engine, s.database, s.server = e.Name, e.Database, e.Server
	s.auditor = rush.Database{DB: e.Admin, Nodes: e.Cluster.DBs}
	s.missing = lockstrategy.AllMissing(onengine.Deps(e))
	shops := o.shops
	if why := shops.unchecked(e); why != "" {
		return shops, errors.New(why)
	}
	shops.maxInflight = max(shops.maxInflight, o.buyers) // the crowd is meant to get in
	return shops, nil
}

// at adds one process's address.
func (s *storefront) at(base, token string) {
	s.urls = append(s.urls, base)
	s.target = rush.Target{BaseURL: s.urls[0], Token: token}
}

// serveHere serves in this process, on a real listener.
func (s *storefront) serveHere(e *engine.Engine, flags shopFlags) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	shop := web.New(e, flags.config(), slog.New(slog.DiscardHandler))
	server := shop.Server(l.Addr(), "")
	stop := shop.Work(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	s.closers = append(s.closers, func() error {
		defer stop()
		ctx, cancel := context.WithTimeout(context.Background(), web.ShutdownTimeout)
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

// names are the strategies to run, in the order asked for or of the catalogue. Those that the
// rush's fault would not strike are left out: they have shown nothing.
func (o *rushOptions) names(s *storefront) (names []string, _ error) {
	all, err := o.asked(s)
	if err != nil {
		return nil, err
	}
	var spared []string
	why := ""
	for _, name := range all {
		if unused := o.unused(name); unused != "" {
			spared, why = append(spared, name), unused
		} else {
			names = append(names, name)
		}
	}
	if spared != nil {
		s.unused = []string{strings.Join(spared, ", ") + ": " + why}
	}
	if names == nil {
		return nil, fmt.Errorf("nothing would be struck: %s", s.unused[0])
	}
	return names, nil
}

// asked are the strategies that can run, of those that were asked for.
func (o *rushOptions) asked(s *storefront) ([]string, error) {
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
func (s *storefront) serves(name string) error {
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
