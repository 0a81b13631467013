package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/zookeeper"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestRevoked: the lease of the product's first in line is found and revoked, another
// product's is not, and one that is still there is no strike.
func TestRevoked(t *testing.T) {
	g := localservertest.Group(t)
	var (
		s    Servers
		errs [2]error
	)
	s.etcd, errs[0] = localserver.StartEtcd(g)
	s.zookeeper, errs[1] = localserver.StartZookeeper(g)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for need, line := range map[lockstrategy.Need]func(*testing.T, string, ...string){
		lockstrategy.NeedsEtcd: etcdLine, lockstrategy.NeedsZookeeper: zookeeperLine,
	} {
		t.Run(string(need), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			lock, err := s.coordinator([]lockstrategy.Need{lockstrategy.NeedsNamedLocks, need})
			if err != nil {
				t.Fatal(err)
			}
			defer lock.close()
			addr := s.etcd.Addr
			if need == lockstrategy.NeedsZookeeper {
				addr = s.zookeeper.Addr
			}
			line(t, addr, "pear", "apple", "apple")
			if _, err := lock.holder(ctx, "plum"); !errors.Is(err, ErrMissed) {
				t.Errorf("nobody holds it: %v", err)
			}
			first, err := lock.holder(ctx, "apple")
			if err != nil {
				t.Fatal(err)
			}
			gone := func(name string, p place, want bool) {
				t.Helper()
				if got, err := lock.gone(ctx, p); err != nil || got != want {
					t.Errorf("%s: gone %t, %v; want %t", name, got, err, want)
				}
			}
			if need == lockstrategy.NeedsEtcd { // asking ZooKeeper for a session takes it over
				gone("before", first, false)
			}
			if err := lock.revoke(ctx, first); err != nil {
				t.Fatal(err)
			}
			gone("revoked", first, true)
			second, err := lock.holder(ctx, "apple")
			if err != nil || second == first {
				t.Fatalf("the second in line: %v, %v", second, err)
			}
			gone("the second's", second, false)
		})
	}
}

// etcdLine has a key under a lease of its own for each product, in that order.
func etcdLine(t *testing.T, addr string, products ...string) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for _, product := range products {
		lease, err := client.Grant(t.Context(), 600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Put(t.Context(), fmt.Sprintf("lock/%s/%x", product, lease.ID), "", clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
	}
}

// zookeeperLine has a node under a session of its own for each product.
func zookeeperLine(t *testing.T, addr string, products ...string) {
	for _, product := range products {
		conn, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogger(zookeeper.Silent{}), zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
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

// TestRevokedFrom: the lease must be gone, and its holder alive and in its section.
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
	if _, err := (&Servers{}).coordinator([]lockstrategy.Need{lockstrategy.NeedsRedis}); !errors.Is(err, ErrMissed) {
		t.Errorf("no coordinator: %v", err)
	}
}

// TestRevoke: the first in the product's line loses its lease, at the server that is needed.
func TestRevoke(t *testing.T) {
	etcd, err := localserver.StartEtcd(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	servers := []engine.LockServer{{Need: string(lockstrategy.NeedsEtcd), Restartable: etcd}}
	etcdLine(t, etcd.Addr, "pear", "apple")
	revoke := func(product string, need lockstrategy.Need) (string, error) {
		return Revoke(ctx, servers, []lockstrategy.Need{need}, product)
	}
	proof, err := revoke("apple", lockstrategy.NeedsEtcd)
	proven(t, "the holder's", proof, err, true)
	if _, err = revoke("apple", lockstrategy.NeedsEtcd); !errors.Is(err, ErrMissed) {
		t.Errorf("nobody holds it any more: %v", err)
	}
	if _, err = revoke("pear", lockstrategy.NeedsZookeeper); !errors.Is(err, ErrMissed) {
		t.Errorf("there is no ZooKeeper: %v", err)
	}
	proof, err = revoke("pear", lockstrategy.NeedsEtcd)
	proven(t, "another product's", proof, err, true)
}
