package libraries

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestGoZookeeper229: a client has created its node in the queue. The connection breaks before the
// answer with the list of earlier nodes. Lock returns an error, and the node stays as long as the
// session lives. It blocks all later clients, even its owner.
// https://github.com/samuel/go-zookeeper/issues/229, whose successor is go-zookeeper/zk.
func TestGoZookeeper229(t *testing.T) {
	t.Parallel()
	server, err := localserver.StartZookeeper(localservertest.Group(t))
	must(t, err)
	way := newProxy(t, server.Addr)
	other := zookeeper(t, server.Addr)
	unlucky := zk.NewLock(zookeeper(t, way.addr), "/apple", zk.WorldACL(zk.PermAll))
	next := zk.NewLock(other, "/apple", zk.WorldACL(zk.PermAll))
	for _, l := range []*zk.Lock{unlucky, next} { // both connections work
		must(t, l.Lock())
		must(t, l.Unlock())
	}

	way.lose(1)
	failed := make(chan error, 1)
	go func() { failed <- unlucky.Lock() }()
	way.lost(t) // the client's node exists by now
	orphan := line(t, other)
	way.cut()
	if err := <-failed; !errors.Is(err, zk.ErrConnectionClosed) || len(orphan) != 1 {
		t.Fatalf("%v with %d nodes in line: the connection was cut at another moment", err, len(orphan))
	}

	got := make(chan error, 1)
	go func() { got <- next.Lock() }()
	for len(line(t, other)) == 0 { // waits for a node in the queue: the orphan, or the node of next
	}
	left := slices.Contains(line(t, other), orphan[0])
	if left {
		select {
		case err := <-got:
			t.Fatalf("%v: the next client did not wait", err)
		case <-time.After(time.Second): // without the break it would wait for the end of the session, two minutes
		}
		must(t, other.Delete("/apple/"+orphan[0], -1))
	}
	must(t, <-got)
	bug{zk.NewLock, ""}.judge(t, left, fmt.Sprintf(
		"Lock failed, and its node is still in line: %t; the next client had the lock when the node was deleted by hand", left))
}

func zookeeper(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, 2*time.Minute, zk.WithLogger(quietZookeeper{}))
	must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

type quietZookeeper struct{}

func (quietZookeeper) Printf(string, ...any) {}

func line(t *testing.T, conn *zk.Conn) []string {
	t.Helper()
	nodes, _, err := conn.Children("/apple")
	must(t, err)
	return nodes
}
