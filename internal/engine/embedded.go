package engine

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// startEmbedded starts Redis in this process, on loopback ports that child processes can reach, and
// sets the URL of a SQLite file.
func startEmbedded(e *Engine) error {
	dir, err := tempDir(e)
	if err != nil {
		return err
	}
	file := filepath.ToSlash(filepath.Join(dir, "shop.db"))
	e.URLs.DB = "sqlite:///" + strings.TrimPrefix((&url.URL{Path: file}).EscapedPath(), "/") // on Windows /C:/...

	var nodes []*miniredis.Miniredis
	count := 1
	if needs := e.URLs.Needs; needs == nil || slices.Contains(needs, "redlock") {
		count += RedlockNodes // only if needed: the explorer reads the stacks of all goroutines at each step, and nodes have goroutines
	}
	for range count {
		node, err := startNode()
		if err != nil {
			return fmt.Errorf("start the embedded Redis: %w", err)
		}
		e.onClose(func() error { node.Close(); return nil })
		nodes = append(nodes, node)
	}
	e.URLs.Redis = "redis://" + nodes[0].Addr()
	e.URLs.Redlock = nil
	e.LockServers = []LockServer{{"redis", embeddedRedis{nodes[0], nodes[0].Addr()}}}
	for _, node := range nodes[1:] {
		e.URLs.Redlock = append(e.URLs.Redlock, "redis://"+node.Addr())
		e.LockServers = append(e.LockServers, LockServer{"redlock", embeddedRedis{node, node.Addr()}})
	}
	if !e.URLs.Still {
		e.onClose(tick(nodes))
	}
	return nil
}

// startNode starts a Redis on a port that no client gets while the server is closed. If another process
// takes the port first, it tries another one.
func startNode() (node *miniredis.Miniredis, err error) {
	for range 3 {
		var port int
		if port, err = localserver.FreePort(); err != nil {
			break
		}
		node = miniredis.NewMiniRedis()
		if err = node.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			break
		}
	}
	return node, err
}

// embeddedRedis is a Redis in this process. Kill closes it.
type embeddedRedis struct {
	*miniredis.Miniredis
	addr string // valid while the server is closed, too
}

// Address implements Restartable.
func (r embeddedRedis) Address() string { return r.addr }

// Kill closes its connections and loses its data.
func (r embeddedRedis) Kill() error {
	r.Close()
	r.FlushAll()
	return nil
}

// Start restarts the server at the same address.
func (r embeddedRedis) Start() error { return r.StartAddr(r.addr) }

// tempDir creates a folder that is removed with the engine. Except on Windows, a janitor process also removes
// it after a SIGKILL of this process.
func tempDir(e *Engine) (string, error) {
	if g, err := localserver.NewGroup(); err == nil {
		e.onClose(g.Close)
		return g.Dir("embedded")
	}
	dir, err := os.MkdirTemp("", "oversell-")
	if err == nil {
		e.onClose(func() error { return os.RemoveAll(dir) })
	}
	return dir, err
}

// tick moves the clocks of the nodes, which do not move by themselves. Otherwise no lease would expire.
func tick(nodes []*miniredis.Miniredis) (stop func() error) {
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case now := <-ticker.C:
				for _, node := range nodes {
					node.FastForward(now.Sub(last))
				}
				last = now
			case <-done:
				return
			}
		}
	}()
	return func() error { close(done); <-stopped; return nil }
}
