// Package zookeeper is a session with ZooKeeper that reports when its ephemeral nodes may be gone.
//
// It is not a lock; internal/lockstrategy builds one on it. Invariant: a node of the session that exists after
// a call of Doubt exists at least until the channel from Doubt is closed.
package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Session is a client of ZooKeeper. When its ZooKeeper session expires, it opens a new one. It is safe for concurrent
// use.
type Session struct {
	Conn *zk.Conn
	Root string // parent path of all nodes of this shop, such as "/a/b"; "" for none

	closed chan struct{}
	close  func()

	mu    sync.Mutex
	doubt chan struct{}
}

// Open begins to connect to one of the hosts and returns before it is connected. A host is "host:port", with
// 2181 as the default port. The last host may end in a path, which becomes Session.Root, as in ZooKeeper's own
// connection strings. `timeout` is how long ephemeral nodes outlive their client; the server may choose
// another time.
func Open(hosts []string, timeout time.Duration) (*Session, error) {
	if len(hosts) == 0 {
		return nil, errors.New("no host; use host:2181")
	}
	hosts = slices.Clone(hosts)
	last := &hosts[len(hosts)-1]
	if strings.Contains(*last, "//") { // no host:port, but a URL
		return nil, checkHost(*last)
	}
	host, root, _ := strings.Cut(*last, "/")
	*last = host
	for _, host := range hosts {
		if err := checkHost(host); err != nil {
			return nil, err
		}
	}
	if root != "" {
		root = "/" + strings.TrimSuffix(root, "/")
	}
	s := &Session{Root: root, closed: make(chan struct{}), doubt: make(chan struct{})}
	conn, _, err := zk.Connect(hosts, timeout, zk.WithEventCallback(s.event), zk.WithLogger(Silent{}), zk.WithLogInfo(false),
		zk.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	s.Conn = conn
	s.close = sync.OnceFunc(func() {
		close(s.closed) // first, so that calls that fail because of Close are not retried
		conn.Close()
	})
	return s, nil
}

func checkHost(host string) error {
	if host == "" || strings.ContainsAny(host, "/@ ") {
		return fmt.Errorf("%q is not a host; use host:2181", host)
	}
	if _, port, err := net.SplitHostPort(host); err == nil {
		if _, err := net.LookupPort("tcp", port); err != nil {
			return fmt.Errorf("%q has no port; use host:2181", host)
		}
	}
	return nil
}

// event closes the channel of Doubt when the connection is lost, and not only when the session expires. The server
// counts the session's time from the last message that it received, and the client cannot know when that was.
func (s *Session) event(e zk.Event) {
	if e.Type != zk.EventSession || (e.State != zk.StateDisconnected && e.State != zk.StateExpired) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.doubt)
	s.doubt = make(chan struct{})
}

// handshake limits the wait for the first answer on a connection. After this time the client tries the next
// server. A server that has just started may accept a connection and never answer. The library would wait for
// ten receive time-outs, nearly seven times the session time-out.
const handshake = 5 * time.Second

// dial is the library's dialer, except that it waits at most the time `handshake` for the first answer.
func dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &firstAnswer{Conn: conn}, nil
}

// firstAnswer is a connection whose read deadlines are limited to `handshake` until the first answer arrives.
// Only one goroutine may read from it, as the library does.
type firstAnswer struct {
	net.Conn
	answered bool
}

func (c *firstAnswer) SetReadDeadline(at time.Time) error {
	if bound := time.Now().Add(handshake); !c.answered && at.After(bound) {
		at = bound
	}
	return c.Conn.SetReadDeadline(at)
}

func (c *firstAnswer) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.answered = c.answered || n > 0
	return n, err
}

// Doubt returns a channel that is closed when the connection is lost the next time.
func (s *Session) Doubt() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubt
}

// Closed returns a channel that Close closes.
func (s *Session) Closed() <-chan struct{} { return s.closed }

// Ping reads the root node. If there is no connection, the library tries all hosts in turn for about a second.
// Then it fails the calls that wait.
func (s *Session) Ping(ctx context.Context) error {
	answered := make(chan error, 1)
	go func() {
		_, _, err := s.Conn.Exists("/")
		answered <- err
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the session: the server deletes its ephemeral nodes at once.
func (s *Session) Close() error {
	s.close()
	return nil
}

// ConnectionLost reports whether err leaves open whether the server executed the call. The session may still
// be alive.
func ConnectionLost(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer)
}

// Silent is a zk.Logger that writes nothing, since the library also returns its errors.
type Silent struct{}

func (Silent) Printf(string, ...any) {}
