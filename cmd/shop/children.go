package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strconv"
	"sync"
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
	s.children = &children{start: start, shops: make([]*localserver.Shop, n)}
	for i := range n {
		if s.children.shops[i], err = start(ctx, i); err != nil {
			return err
		}
		s.closers = append(s.closers, func() error { return s.children.at(i).Stop(shutdownTimeout + time.Second) })
		s.at(s.children.shops[i].URL, "")
	}
	s.restart = func(ctx context.Context) (string, error) {
		if err := s.children.Kill(0); err != nil {
			return "", err
		}
		if err := s.children.Start(ctx, 0); err != nil {
			return "", err
		}
		s.urls[0] = s.children.URLs()[0]
		s.target.BaseURL = s.urls[0]
		return s.urls[0], nil
	}
	return nil
}

// children are shop processes, any of which may be killed and started again. Several
// goroutines may ask for them.
type children struct {
	start func(ctx context.Context, process int) (*localserver.Shop, error)
	mu    sync.Mutex
	shops []*localserver.Shop
}

func (c *children) at(process int) *localserver.Shop {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shops[process]
}

// URLs are the addresses, one a process. Another process in the place of one that was killed
// has another address.
func (c *children) URLs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	urls := make([]string, len(c.shops))
	for i, shop := range c.shops {
		urls[i] = shop.URL
	}
	return urls
}

// Kill ends a process with SIGKILL.
func (c *children) Kill(process int) error { return c.at(process).Kill() }

// Start starts another process in the place of one that was killed.
func (c *children) Start(ctx context.Context, process int) error {
	next, err := c.start(ctx, process)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shops[process] = next
	return nil
}

// Ended tells whether a process has ended.
func (c *children) Ended(process int) bool {
	select {
	case <-c.at(process).Done():
		return true
	default:
		return false
	}
}
