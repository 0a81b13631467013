package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web"
)

// A Storefront is the shop from which the buyers buy: processes of our shop, or a running service (the target).
type Storefront struct {
	Engine   string
	Database string   // name of the database in the catalogue of strategies; "" for a target
	Server   string   // name and version that the database reports; "" for a target
	URLs     []string // addresses of the processes
	Target   rush.Target
	Auditor  rush.Auditor
	Missing  map[string]string     // strategies that cannot run here, with the reason
	Unused   []string              // a line that lists the strategies that the rush's fault does not affect, if there are any
	Served   []rush.TargetStrategy // a target's own list of strategies
	closers  []func() error

	// Restart kills the first process, starts another in its place, and returns its address. It is nil if the
	// shop runs in this process, or is a target.
	Restart func(context.Context) (url string, err error)

	// Children are the shop's processes. It is nil if the shop runs in this process, or is a target.
	Children testbed.Shops

	struck *crowds // sends the buyers and injects faults; nil if no fault can be injected
	noted  noted   // the injected faults
}

// Strikes describes the faults injected so far, each in a sentence.
func (s *Storefront) Strikes() []string { return s.noted.sentences() }

// Send sends the crowd (burst of buyers) of one strategy.
func (s *Storefront) Send(ctx context.Context, o *Crowd, name string, watch Watching) (rush.Result, error) {
	if s.struck != nil {
		return s.struck.send(ctx, o, name, watch)
	}
	return o.rush(ctx, s, name, watch)
}

// Close ends the shops, and then their servers.
func (s *Storefront) Close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// Open opens the target if there is one. Otherwise it opens an engine and starts the shop in this process. If
// there are several processes or the rush is long, the shop runs in child processes instead. `token` is for
// the target's admin routes. `warn` receives warnings about the servers.
func Open(ctx context.Context, o *Crowd, config engine.Config, token string, warn func(string)) (*Storefront, error) {
	s := &Storefront{Engine: "target", Missing: map[string]string{}}
	if o.Target != "" {
		s.at(o.Target, token)
		s.Auditor = s.Target
		served, err := s.Target.Strategies(ctx)
		if err != nil {
			return nil, fmt.Errorf("no answer from %s: %w", o.Target, err)
		}
		s.Served = served
		return s, nil
	}
	e, err := engine.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, e.Close)
	for _, warning := range web.Warnings(ctx, e, o.Shops.Settings.Replicas) {
		warn(warning)
	}
	shops, err := o.on(s, e)
	if err == nil {
		err = canStrike(o, e)
	}
	switch {
	case err != nil:
	case o.Fault != "":
		s.struck = newCrowds(ctx, e, o, s, &s.noted)
		err = s.ServeChildren(ctx, e, shops, o.Processes, s.struck.record)
	case o.Processes == 1 && o.For == 0: // a long rush measures the shop, so the shop needs a process of its own
		err = s.serveHere(e, shops)
	default:
		err = s.ServeChildren(ctx, e, shops, o.Processes, nil)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// on connects the storefront to an open engine, and starts no shop. It returns the configuration for the shops.
func (o *Crowd) on(s *Storefront, e *engine.Engine) (web.Config, error) {
	s.Engine, s.Database, s.Server = e.Name, e.Database, e.Server
	s.Auditor = rush.Database{DB: e.Admin, Nodes: e.Cluster.DBs}
	s.Missing = lockstrategy.AllMissing(onengine.Deps(e))
	shops := o.Shops
	if why := shops.Uncheck(e); why != "" {
		return shops, errors.New(why)
	}
	shops.MaxInflight = max(shops.MaxInflight, o.Buyers) // the shop must not refuse buyers only because they are many
	return shops, nil
}

func (s *Storefront) at(base, token string) {
	s.URLs = append(s.URLs, base)
	s.Target = rush.Target{BaseURL: s.URLs[0], Token: token}
}

// serveHere serves in this process, on a real listener.
func (s *Storefront) serveHere(e *engine.Engine, flags web.Config) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	shop := web.New(e, flags, slog.New(slog.DiscardHandler))
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

// ServeChildren starts n `shop serve` processes of this program on the engine's servers, each with its own
// pool and memory. If `record` is not nil, it receives each line of their histories. Then the children also
// accept commands to stop buyers, and their links to the servers (proxies) can be cut.
func (s *Storefront) ServeChildren(ctx context.Context, e *engine.Engine, f web.Config, n int, record func(process int, line []byte)) error {
	group, err := localserver.NewGroup()
	if err != nil {
		return err
	}
	s.closers = append(s.closers, group.Close)
	command := testbed.Command{
		LogLevel: "warn", Conns: e.URLs.Conns, MaxInflight: f.MaxInflight,
		Wait: f.Settings.Wait, Lease: f.Settings.LeaseTTL, Poll: f.Settings.Poll, Replicas: f.Settings.Replicas,
		SoldOutCheck: f.SoldOutCheck, Admission: f.Admission, Failpoints: record != nil,
	}
	for process := range n {
		var links testbed.Links
		var heard func(line []byte)
		servers := e.URLs
		servers.Process = process
		if record != nil {
			if links, err = testbed.NewLinks(e.LockServers); err != nil {
				return err
			}
			s.closers = append(s.closers, func() error { links.Cut(); return nil })
			servers = links.Lead(servers)
			heard = func(line []byte) { record(process, line) }
		}
		shop, err := testbed.StartShop(ctx, group, servers, command.At, heard)
		if err != nil {
			return err
		}
		shop.Links = links
		s.closers = append(s.closers, func() error { return shop.Stop(web.ShutdownTimeout + time.Second) })
		s.Children = append(s.Children, shop)
		s.at(shop.URL(), "")
	}
	s.Restart = func(ctx context.Context) (string, error) {
		if err := s.Children[0].Kill(); err != nil {
			return "", err
		}
		if err := s.Children[0].Start(ctx); err != nil {
			return "", err
		}
		s.URLs[0] = s.Children[0].URL()
		s.Target.BaseURL = s.URLs[0]
		return s.URLs[0], nil
	}
	return nil
}
