package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/zookeeper"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy/zkline"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// soon limits the wait for an event that must come, even on the slowest machine.
const soon = time.Minute

// A serverLine is the queue of buyers on a server, read and changed from outside.
type serverLine struct {
	locker Locker
	// waiting returns the places in the queue, unordered.
	waiting func() ([]string, error)
	// lose removes a place, as the end of its session or lease does.
	lose func(place string) error
}

func serverLines(t *testing.T) map[string]serverLine {
	e := enginetest.Coordinated(t)
	settings := DefaultSettings()
	settings.LeaseTTL = 2 * time.Minute
	z := newZookeeperLock(Deps{Zookeeper: e.Zookeeper, Settings: settings})
	line := zkline.Of(e.Zookeeper, "apple")
	c := newEtcdLock(Deps{Etcd: e.Etcd, Settings: settings}, "etcd")
	leases := func() (map[string]clientv3.LeaseID, error) {
		line, err := e.Etcd.Get(t.Context(), c.prefix("apple")+"/", clientv3.WithPrefix())
		if err != nil {
			return nil, err
		}
		leases := map[string]clientv3.LeaseID{}
		for _, key := range line.Kvs {
			leases[string(key.Key)] = clientv3.LeaseID(key.Lease)
		}
		return leases, nil
	}
	return map[string]serverLine{
		"zookeeper": {
			locker: z,
			waiting: func() ([]string, error) {
				nodes, _, err := e.Zookeeper.Conn.Children(line.Dir)
				return nodes, err
			},
			lose: func(node string) error { return e.Zookeeper.Conn.Delete(line.Dir+"/"+node, -1) },
		},
		"etcd": {
			locker: c,
			waiting: func() (keys []string, err error) {
				leases, err := leases()
				for key := range leases {
					keys = append(keys, key)
				}
				return keys, err
			},
			lose: func(key string) error {
				leases, err := leases()
				if err != nil {
					return err
				}
				_, err = e.Etcd.Revoke(t.Context(), leases[key])
				return err
			},
		},
	}
}

// TestPlaceLostWhileWaiting: a buyer that loses its place in the queue does not take the lock at
// its former turn (etcd issue 11456). It queues again.
func TestPlaceLostWhileWaiting(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper and etcd")
	for name, line := range serverLines(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			holder := mustLock(t, ctx, line.locker)
			places := waitForLine(t, line, 1)
			next := make(chan Lease, 1)
			go func() {
				lease, err := line.locker.Lock(ctx, "apple")
				expect.NoError(t, err, "the waiter")
				next <- lease
			}()
			var lost string
			for _, place := range waitForLine(t, line, 2) {
				if place != places[0] {
					lost = place
				}
			}
			require.NoError(t, line.lose(lost))
			require.NoError(t, holder.Release(ctx))
			lease := <-next
			if lease == nil {
				return
			}
			if places := waitForLine(t, line, 1); places[0] == lost {
				t.Error("the lost place is there again")
			}
			expect.NoError(t, lease.Release(ctx), "the release")
		})
	}
}

func mustLock(t *testing.T, ctx context.Context, l Locker) Lease {
	t.Helper()
	lease, err := l.Lock(ctx, "apple")
	require.NoError(t, err)
	return lease
}

// waitForLine returns the places once there are n.
func waitForLine(t *testing.T, line serverLine, n int) (places []string) {
	t.Helper()
	require.Eventually(t, fmt.Sprint("places in line: ", n), func() (there bool) {
		var err error
		places, err = line.waiting()
		require.NoError(t, err)
		return len(places) == n
	})
	return places
}

// TestAnswerToCreateLost: the server creates the node, but its answer is lost, and the session
// lives on. If the node stayed in the queue, it would stop all buyers as long as the shop runs.
func TestAnswerToCreateLost(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper and etcd")
	e := enginetest.Coordinated(t)
	host, root, _ := strings.Cut(e.URLs.Zookeeper[0], "/")
	p := newProxy(t, host)
	session, err := zookeeper.Open([]string{p.addr + "/" + root}, enginetest.Lease)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	unlucky, other := newZookeeperLock(Deps{Zookeeper: session}), newZookeeperLock(Deps{Zookeeper: e.Zookeeper})
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := mustLock(t, ctx, unlucky).Release(ctx); err != nil { // this creates the parent nodes
		t.Fatal(err)
	}
	before := session.Conn.SessionID()

	p.swallow.Store(true)
	var down *purchase.Unavailable
	if _, err := unlucky.Lock(ctx, "apple"); !errors.As(err, &down) || !errors.Is(err, zk.ErrConnectionClosed) {
		t.Fatalf("%v, want that ZooKeeper is down", err)
	}
	if p.swallow.Load() {
		t.Fatal("no answer was swallowed: the test shows nothing")
	}
	expect.NoError(t, mustLock(t, ctx, other).Release(ctx))
	expect.Equal(t, session.Conn.SessionID(), before, "the end of the session has removed the node, not the lock")
}

// proxy forwards to a server. With swallow set it drops the next answer and
// cuts the connection.
type proxy struct {
	addr    string
	swallow atomic.Bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p := &proxy{addr: l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(upstream, client)
				_ = upstream.Close()
			}()
			go p.answers(client, upstream)
		}
	}()
	return p
}

func (p *proxy) answers(client, upstream net.Conn) {
	defer client.Close()
	defer upstream.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := upstream.Read(buf)
		if err != nil || p.swallow.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
