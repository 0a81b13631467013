package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/localserver"
)

// serveChildren starts n `shop serve` of this very binary on the engine's
// servers, each with a pool and a memory of its own.
func (s *testbed) serveChildren(ctx context.Context, e *engine.Engine, f shopFlags, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	group, err := localserver.NewGroup()
	if err != nil {
		return err
	}
	s.closers = append(s.closers, group.Close)
	start := func(ctx context.Context, process int) (*localserver.Shop, error) {
		child := exec.Command(self, "serve", "--addr", "127.0.0.1:0", "--log-level", "warn",
			"--db-conns", strconv.Itoa(e.URLs.Conns), "--max-inflight", strconv.Itoa(f.maxInflight),
			"--wait", f.settings.Wait.String(), "--lease", f.settings.LeaseTTL.String(),
			"--poll", f.settings.Poll.String(), "--redis-wait", strconv.Itoa(f.settings.Replicas), "--"+soldOutCheck+"="+strconv.FormatBool(f.check), "--"+admission, cmp.Or(f.admission, noAdmission))
		child.Env = append(append(os.Environ(), childEnvironment(e.URLs)...), engine.ProcessEnv(process))
		child.Stderr = os.Stderr
		return localserver.StartShop(ctx, group, child, nil)
	}
	shops := make([]*localserver.Shop, n)
	for i := range shops {
		if shops[i], err = start(ctx, i); err != nil {
			return err
		}
		s.closers = append(s.closers, func() error { return shops[i].Stop(shutdownTimeout + time.Second) })
		s.at(shops[i].URL, "")
	}
	s.restart = func(ctx context.Context) (string, error) {
		if err := shops[0].Kill(); err != nil {
			return "", err
		}
		next, err := start(ctx, 0)
		if err != nil {
			return "", err
		}
		shops[0], s.urls[0], s.target.BaseURL = next, next.URL, next.URL
		return next.URL, nil
	}
	return nil
}
