package main

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web"
)

// serveChildren starts n `shop serve` of this very binary on the engine's servers, each with a
// pool and a memory of its own. record gets what each writes of its history, line by line, and
// such a child can be told to hold buyers and has links that can be cut; nil: they write none.
func (s *storefront) serveChildren(ctx context.Context, e *engine.Engine, f shopFlags, n int, record func(process int, line []byte)) error {
	group, err := localserver.NewGroup()
	if err != nil {
		return err
	}
	s.closers = append(s.closers, group.Close)
	command := testbed.Command{
		LogLevel: "warn", Conns: e.URLs.Conns, MaxInflight: f.maxInflight,
		Wait: f.settings.Wait, Lease: f.settings.LeaseTTL, Poll: f.settings.Poll, Replicas: f.settings.Replicas,
		SoldOutCheck: f.check, Admission: f.admission, Failpoints: record != nil,
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
		s.children = append(s.children, shop)
		s.at(shop.URL(), "")
	}
	s.restart = func(ctx context.Context) (string, error) {
		if err := s.children[0].Kill(); err != nil {
			return "", err
		}
		if err := s.children[0].Start(ctx); err != nil {
			return "", err
		}
		s.urls[0] = s.children[0].URL()
		s.target.BaseURL = s.urls[0]
		return s.urls[0], nil
	}
	return nil
}
