package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// serveChildren starts n `shop serve` of this very binary on the engine's
// servers, each with a pool and a memory of its own. record gets what each writes of its
// history, line by line, and such a child can be told to hold buyers; nil: they write none.
func (s *testbed) serveChildren(ctx context.Context, e *engine.Engine, f shopFlags, n int, record func(process int, line []byte)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	group, err := localserver.NewGroup()
	if err != nil {
		return err
	}
	s.closers = append(s.closers, group.Close)
	s.children = &children{shops: make([]*localserver.Shop, n), commands: make([]*os.File, n)}
	s.closers = append(s.closers, s.children.hangUp)
	if record != nil {
		if err := s.layLines(e, n); err != nil {
			return err
		}
	}
	s.children.start = func(ctx context.Context, process int, addr string) (*localserver.Shop, *os.File, error) {
		child := exec.Command(self, childArguments(e, f, addr)...)
		servers := e.URLs
		if record != nil {
			servers = s.children.lines[process].Lead(servers)
		}
		child.Env = append(append(os.Environ(), childEnvironment(servers)...), engine.ProcessEnv(process))
		child.Stderr = os.Stderr
		if record == nil {
			shop, err := localserver.StartShop(ctx, group, child, nil)
			return shop, nil, err
		}
		child.Args = append(child.Args, "--failpoints")
		stdin, commands, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		defer stdin.Close() // the child has its own
		child.Stdin = stdin
		shop, err := localserver.StartShop(ctx, group, child, func(line []byte) { record(process, line) })
		if err != nil {
			return nil, nil, errors.Join(err, commands.Close())
		}
		return shop, commands, nil
	}
	for i := range n {
		if err := s.children.startAt(ctx, i, "127.0.0.1:0"); err != nil {
			return err
		}
		s.closers = append(s.closers, func() error { return s.children.at(i).Stop(shutdownTimeout + time.Second) })
		s.at(s.children.at(i).URL, "")
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

// layLines puts links between each child and the lock servers, which a fault can delay and cut.
func (s *testbed) layLines(e *engine.Engine, n int) error {
	for range n {
		lines, err := fault.NewLines(e.LockServers)
		if err != nil {
			return err
		}
		s.closers = append(s.closers, lines.Close)
		s.children.lines = append(s.children.lines, lines)
	}
	return nil
}

// childArguments are those of a child: the flags of the shop, and no check or admission
// but what they say.
func childArguments(e *engine.Engine, f shopFlags, addr string) []string {
	return []string{
		"serve", "--addr", addr, "--log-level", "warn",
		"--db-conns", strconv.Itoa(e.URLs.Conns), "--max-inflight", strconv.Itoa(f.maxInflight),
		"--wait", f.settings.Wait.String(), "--lease", f.settings.LeaseTTL.String(),
		"--poll", f.settings.Poll.String(), "--redis-wait", strconv.Itoa(f.settings.Replicas),
		"--" + soldOutCheck + "=" + strconv.FormatBool(f.check), "--" + admission, cmp.Or(f.admission, noAdmission),
	}
}

// children are shop processes, any of which may be killed and started again. Several
// goroutines may ask for them.
type children struct {
	start    func(ctx context.Context, process int, addr string) (*localserver.Shop, *os.File, error)
	mu       sync.Mutex
	shops    []*localserver.Shop
	commands []*os.File     // to each one's stdin; nil where it takes none
	lines    []*fault.Lines // of each to the engine's lock servers; nil where nothing strikes
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
	return c.startAt(ctx, process, "127.0.0.1:0")
}

func (c *children) startAt(ctx context.Context, process int, addr string) error {
	next, commands, err := c.start(ctx, process, addr)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shops[process] = next
	if old := c.commands[process]; old != nil {
		_ = old.Close() // of a process that has ended
	}
	c.commands[process] = commands
	return nil
}

// Lines lead each process to the lock servers that the engine has started.
func (c *children) Lines() []*fault.Lines { return c.lines }

// tell sends a line to a process, see internal/fault/failpoint.
func (c *children) tell(process int, line string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := fmt.Fprintln(c.commands[process], line)
	return err
}

// hangUp closes the lines to the processes.
func (c *children) hangUp() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, commands := range c.commands {
		if commands != nil {
			errs = append(errs, commands.Close())
		}
	}
	return errors.Join(errs...)
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
