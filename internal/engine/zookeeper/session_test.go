package zookeeper_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/oversell/oversell/internal/engine/zookeeper"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

const timeout = time.Minute

func start(t *testing.T) *localserver.Zookeeper {
	t.Helper()
	server, err := localserver.StartZookeeper(localservertest.Group(t))
	require.NoError(t, err)
	return server
}

// open opens a session that outlives its client by ten minutes, so that none expires in a test.
func open(t *testing.T, address string) *zookeeper.Session {
	t.Helper()
	s, err := zookeeper.Open([]string{address}, 10*time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil { // may be the second time
			t.Error(err)
		}
	})
	return s
}

func answers(t *testing.T, s *zookeeper.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	err := s.Ping(ctx)
	for err != nil && ctx.Err() == nil { // the library fails calls between two connections
		err = s.Ping(ctx)
	}
	require.NoError(t, err, "the server does not answer")
}

func closed(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(timeout):
		t.Fatalf("%s: not within %s", what, timeout)
	}
}

// TestOpen: an invalid address is rejected before any connection, and a path after the last host is the
// root.
func TestOpen(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper")
	t.Parallel()
	for _, hosts := range [][]string{
		nil, {""}, {"http://a:2181"}, {"a:2181/x", "b:2181"}, {"user@a:2181"}, {"a b:2181"}, {"a:nonsense"}, {"zk://a:2181/shop"},
	} {
		if s, err := zookeeper.Open(hosts, time.Second); err == nil {
			_ = s.Close()
			t.Errorf("%q was opened", hosts)
		}
	}
	for path, root := range map[string]string{"": "", "/": "", "/shop": "/shop", "/a/b": "/a/b", "/a/b/": "/a/b"} {
		hosts := []string{"127.0.0.1:1", "127.0.0.1:1" + path}
		s, err := zookeeper.Open(hosts, time.Second)
		if err != nil {
			t.Errorf("%q: %v", hosts, err)
			continue
		}
		expect.Equal(t, s.Root, root, hosts, "root")
		expect.Equal(t, hosts[1], "127.0.0.1:1"+path, "the caller's hosts", hosts)
		_ = s.Close()
	}
}

// TestDoubt: a session without a connection is in doubt, although the server still keeps it. With the next
// connection it is no longer in doubt.
func TestDoubt(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper")
	t.Parallel()
	server := start(t)
	s := open(t, server.Addr)
	answers(t, s)
	first := s.Doubt()
	expect.Equal(t, s.Doubt(), first, "two questions in one connection")
	node, err := s.Conn.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	select {
	case <-first:
		t.Fatal("in doubt while the connection stands")
	default:
	}
	require.NoError(t, server.Kill())
	closed(t, "doubt after the server was killed", first)
	require.NoError(t, server.Start())
	answers(t, s)
	second := s.Doubt()
	select {
	case <-second:
		t.Error("in doubt although there is a new connection")
	default:
	}
	if there, _, err := s.Conn.Exists(node); err != nil || !there {
		t.Errorf("the session's node is there: %t, %v; the server kept the session", there, err)
	}
}

// TestSilentServer: a server that accepts the first connection and never answers costs one try. The
// session lives for ten minutes, so the library alone would wait for more than an hour.
func TestSilentServer(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper")
	t.Parallel()
	server := start(t)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = front.Close() })
	go func() {
		silent, err := front.Accept()
		if err != nil {
			return
		}
		defer silent.Close()
		for {
			client, err := front.Accept()
			if err != nil {
				return
			}
			go forward(client, server.Addr)
		}
	}()
	answers(t, open(t, front.Addr().String()))
}

// forward copies between client and address until both have ended.
func forward(client net.Conn, address string) {
	defer client.Close()
	up, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		_, _ = io.Copy(up, client)
		_ = up.Close()
	}()
	_, _ = io.Copy(client, up)
}

// TestClose: the server deletes the nodes of the session at once and not after its time-out. A second
// Close has no effect.
func TestClose(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper")
	t.Parallel()
	server := start(t)
	holder, other := open(t, server.Addr), open(t, server.Addr)
	answers(t, holder)
	answers(t, other)
	require.NoError(t, expect.ErrorOf(holder.Conn.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))))
	there, _, events, err := other.Conn.ExistsW("/mine")
	if err != nil || !there {
		t.Fatalf("the node is there: %t, %v", there, err)
	}
	select {
	case <-holder.Closed():
		t.Fatal("closed before Close")
	default:
	}
	require.NoError(t, holder.Close())
	closed(t, "Closed", holder.Closed())
	select {
	case e := <-events:
		expect.Equal(t, e.Type, zk.EventNodeDeleted, e)
	case <-time.After(timeout):
		t.Errorf("the node is still there after %s", timeout)
	}
	expect.NoError(t, holder.Close(), "the second Close")
}

// TestConnectionLost: ConnectionLost reports only errors after which a call may have been executed.
func TestConnectionLost(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper")
	t.Parallel()
	for err, want := range map[error]bool{
		zk.ErrConnectionClosed: true,
		zk.ErrNoServer:         true,
		fmt.Errorf("create: %w", zk.ErrConnectionClosed): true,
		zk.ErrSessionExpired:                             false,
		zk.ErrNoNode:                                     false,
		zk.ErrClosing:                                    false,
	} {
		expect.Equal(t, zookeeper.ConnectionLost(err), want, err)
	}
}
