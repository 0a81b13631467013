// Package zookeeper is one session with ZooKeeper: a connection that says from when on
// nobody can know whether its ephemeral nodes are still there.
//
// It is not a lock: internal/lockstrategy makes one of it. The invariant: a node that was
// seen after a call of Doubt is there until the channel that Doubt returned is closed.
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

// A Session is one connection, and after an expiry the next session on it.
// Any number of goroutines may use it.
type Session struct {
	Conn *zk.Conn
	Root string // "/a/b", under which all nodes of this shop are; "" is the top

	closed chan struct{}
	close  func()

	mu    sync.Mutex
	doubt chan struct{}
}

// Open begins to connect to one of hosts, "host:port" each, port 2181 where
// there is none. The last may end in a path, Session.Root, as in ZooKeeper's
// own connection strings. timeout is how long the ephemeral nodes live without their
// client; the server may grant another one. It returns before there is a
// connection.
func Open(hosts []string, timeout time.Duration) (*Session, error) {
	if len(hosts) == 0 {
		return nil, errors.New("no host; give host:2181")
	}
	hosts = slices.Clone(hosts)
	last := &hosts[len(hosts)-1]
	if strings.Contains(*last, "//") { // a URL
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
		close(s.closed) // first: a call that now ends with an error must not be tried again
		conn.Close()
	})
	return s, nil
}

func checkHost(host string) error {
	if host == "" || strings.ContainsAny(host, "/@ ") {
		return fmt.Errorf("%q is not a host; give host:2181", host)
	}
	if _, port, err := net.SplitHostPort(host); err == nil {
		if _, err := net.LookupPort("tcp", port); err != nil {
			return fmt.Errorf("%q has no port; give host:2181", host)
		}
	}
	return nil
}

// event closes the channel of Doubt when the connection is lost. The server counts the
// session's time from the last message that it got, which the client cannot know. So the
// doubt begins with the disconnection, and not with the expiry.
func (s *Session) event(e zk.Event) {
	if e.Type != zk.EventSession || (e.State != zk.StateDisconnected && e.State != zk.StateExpired) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.doubt)
	s.doubt = make(chan struct{})
}

// handshake is how long a server may leave a connection without its first answer before
// the client tries the next one. A server that has just started may take a connection and
// never answer it; the library waits for ten receive time-outs then, which is nearly seven
// times as long as the session lives.
const handshake = 5 * time.Second

// dial is the library's dialer with handshake as the bound of the first answer.
func dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &firstAnswer{Conn: conn}, nil
}

// firstAnswer is a connection whose deadlines are at most handshake away until something
// was read. One goroutine reads, as the library does.
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

// Closed is closed by Close.
func (s *Session) Closed() <-chan struct{} { return s.closed }

// Ping asks for the root node. While there is no connection the library fails
// a call after each round of all hosts, about once a second.
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

// ConnectionLost reports whether err leaves open whether the call was carried out. The
// session may live on.
func ConnectionLost(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer)
}

// Silent is a zk.Logger that writes nothing: what the library would log it returns too.
type Silent struct{}

func (Silent) Printf(string, ...any) {}
