package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/localserver"
)

// serveChildren starts n `shop serve` of this very binary on the engine's
// servers, each with a pool and a memory of its own.
func (s *stage) serveChildren(ctx context.Context, e *engine.Engine, f shopFlags, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	group, err := localserver.NewGroup()
	if err != nil {
		return err
	}
	s.closers = append(s.closers, group.Close)
	for range n {
		child := exec.Command(self, "serve", "--addr", "127.0.0.1:0", "--log-level", "warn",
			"--db-conns", strconv.Itoa(e.URLs.Conns), "--max-inflight", strconv.Itoa(f.maxInflight),
			"--wait", f.settings.Wait.String(), "--lease", f.settings.LeaseTTL.String(),
			"--poll", f.settings.Poll.String())
		child.Env = append(os.Environ(), childEnvironment(e.URLs)...)
		child.Stderr = os.Stderr
		url, process, err := startShop(ctx, group, child)
		if err != nil {
			return err
		}
		s.closers = append(s.closers, func() error { return process.Stop(shutdownPatience + time.Second) })
		s.at(url, "")
	}
	return nil
}

// startShop starts the child and waits for the line that says where it serves.
func startShop(ctx context.Context, group *localserver.Group, child *exec.Cmd) (url string, _ *localserver.Process, _ error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	child.Stdout = in
	process, err := group.Start(child)
	if err := errors.Join(err, in.Close()); err != nil {
		return "", nil, errors.Join(err, out.Close())
	}
	line := make(chan string, 1)
	go func() {
		defer out.Close()
		first, _ := bufio.NewReader(out).ReadString('\n') // "" when the child ended without one
		line <- first
		_, _ = io.Copy(io.Discard, out)
	}()
	select {
	case first := <-line:
		url, ok := strings.CutPrefix(strings.TrimSpace(first), listening)
		if !ok {
			return "", nil, fmt.Errorf("a shop process did not start: %q", first)
		}
		return url, process, nil
	case <-time.After(time.Minute):
		return "", nil, errors.New("a shop process did not serve within a minute")
	case <-ctx.Done():
		return "", nil, ctx.Err()
	}
}
