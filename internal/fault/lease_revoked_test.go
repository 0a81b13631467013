package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/oversell/oversell/internal/engine/zookeeper"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// TestRevoked: revoke revokes the lease of the first entry in the product's queue, and not that of another
// product. A lease that still exists does not count as revoked.
func TestRevoked(t *testing.T) {
	tier.Soak(t, "needs etcd")
	g := localservertest.Group(t)
	etcd, err1 := localserver.StartEtcd(g)
	zookeeper, err2 := localserver.StartZookeeper(g)
	require.NoError(t, errors.Join(err1, err2))
	there := map[lockstrategy.Need]string{lockstrategy.NeedsEtcd: etcd.Addr, lockstrategy.NeedsZookeeper: zookeeper.Addr}
	for need, line := range map[lockstrategy.Need]func(*testing.T, string, ...string){
		lockstrategy.NeedsEtcd: etcdLine, lockstrategy.NeedsZookeeper: zookeeperLine,
	} {
		t.Run(string(need), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			lock, err := coordinatorOf([]lockstrategy.Need{lockstrategy.NeedsNamedLocks, need}, there)
			require.NoError(t, err)
			defer lock.close()
			line(t, there[need], "pear", "apple", "apple")
			if _, err := lock.holder(ctx, "plum"); !errors.Is(err, ErrMissed) {
				t.Errorf("nobody holds it: %v", err)
			}
			first, err := lock.holder(ctx, "apple")
			require.NoError(t, err)
			gone := func(name string, p place, want bool) {
				t.Helper()
				if got, err := lock.gone(ctx, p); err != nil || got != want {
					t.Errorf("%s: gone %t, %v; want %t", name, got, err, want)
				}
			}
			if need == lockstrategy.NeedsEtcd { // asking ZooKeeper for a session takes it over
				gone("before", first, false)
			}
			require.NoError(t, lock.revoke(ctx, first))
			gone("revoked", first, true)
			second, err := lock.holder(ctx, "apple")
			if err != nil || second == first {
				t.Fatalf("the second in line: %v, %v", second, err)
			}
			gone("the second's", second, false)
			bed := newTestBed(t, "pear")
			if third, gone, err := revoke(ctx, lock, bed); err != nil || !gone || third.node == "" {
				t.Errorf("another product's: %v, gone %t, %v", third, gone, err)
			}
			if _, _, err := revoke(ctx, lock, bed); !errors.Is(err, ErrMissed) {
				t.Errorf("it is held no more: %v", err)
			}
		})
	}
}

// etcdLine creates a key for each product, in that order, each under a lease of its own.
func etcdLine(t *testing.T, addr string, products ...string) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	for _, product := range products {
		lease, err := client.Grant(t.Context(), 600)
		require.NoError(t, err)
		if _, err := client.Put(t.Context(), fmt.Sprintf("lock/%s/%x", product, lease.ID), "", clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
	}
}

// zookeeperLine creates a node for each product, each under a session of its own.
func zookeeperLine(t *testing.T, addr string, products ...string) {
	for _, product := range products {
		conn, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogger(zookeeper.Silent{}), zk.WithLogInfo(false))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		acl := zk.WorldACL(zk.PermAll)
		if _, err := conn.CreateContainer("/"+product, nil, zk.FlagContainer, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
		if _, err := conn.Create("/"+product+"/n-", nil, zk.FlagEphemeralSequential, acl); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRevokedFrom: the lease must be gone, and its holder alive and in its critical section.
func TestRevokedFrom(t *testing.T) {
	for _, c := range []struct {
		name              string
		gone, alive, open bool
		struck            bool
	}{
		{"taken away", true, true, true, true},
		{"still there", false, true, true, false},
		{"dead", true, false, true, false},
		{"out of its section", true, true, false, false},
	} {
		proof, err := revokedFrom(place{"/apple/1", 7}, c.gone, c.alive, c.open)
		proven(t, c.name, proof, err, c.struck)
	}
	there := map[lockstrategy.Need]string{lockstrategy.NeedsEtcd: "127.0.0.1:1"}
	if _, err := coordinatorOf([]lockstrategy.Need{lockstrategy.NeedsZookeeper}, there); !errors.Is(err, ErrMissed) {
		t.Errorf("there is no ZooKeeper: %v", err)
	}
}
