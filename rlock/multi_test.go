package rlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// nodes returns independent servers with one lock each. No new server gets the port of a server that a
// test has closed.
func nodes(t *testing.T, n int, name string) ([]*miniredis.Miniredis, []*Lock) {
	t.Helper()
	var servers []*miniredis.Miniredis
	var locks []*Lock
	for range n {
		port, err := localserver.FreePort()
		require.NoError(t, err)
		server := miniredis.NewMiniRedis()
		require.NoError(t, server.StartAddr(fmt.Sprintf("127.0.0.1:%d", port)))
		t.Cleanup(server.Close)
		b := &bench{server.Addr(), dial(t, server.Addr()), server}
		servers, locks = append(servers, server), append(locks, b.client(t).NewLock(name))
	}
	return servers, locks
}

func TestMulti(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	servers, locks := nodes(t, 3, "stock")
	multi := Multi(locks...)
	lease, err := multi.Lock(ctx)
	require.NoError(t, err)
	for i, server := range servers {
		if !server.Exists("stock") {
			t.Errorf("node %d is not locked", i)
		}
	}
	expect.ErrorIs(t, expect.ErrorOf(multi.TryLock(ctx)), ErrNotObtained)
	again, err := multi.TryLock(lease.Context())
	require.NoError(t, err, "reentry")
	for _, l := range []*MultiLease{again, lease} {
		expect.NoError(t, l.Unlock(ctx))
	}
	expect.ErrorIs(t, lease.Unlock(ctx), ErrNotHeld, "unlocked twice")
	for i, server := range servers {
		if server.Exists("stock") {
			t.Errorf("node %d is still locked", i)
		}
	}
}

// TestMultiAllOrNone: if one node is locked or down, no lock is kept.
func TestMultiAllOrNone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		hurt func(*miniredis.Miniredis)
		wait []Option
	}{
		{"taken", func(m *miniredis.Miniredis) { m.HSet("stock", "java:1", "1") }, nil},
		{"taken, with a wait", func(m *miniredis.Miniredis) { m.HSet("stock", "java:1", "1") }, []Option{Wait(time.Second)}},
		{"down", func(m *miniredis.Miniredis) { m.Close() }, nil},
		{"down, with a wait", func(m *miniredis.Miniredis) { m.Close() }, []Option{Wait(time.Second)}},
		{"down, fixed lease", func(m *miniredis.Miniredis) { m.Close() }, []Option{LeaseTime(time.Minute)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			servers, locks := nodes(t, 3, "stock")
			row.hurt(servers[2])
			lease, err := Multi(locks...).TryLock(within(t), row.wait...)
			if !errors.Is(err, ErrNotObtained) {
				t.Fatalf("got %v, %v, want ErrNotObtained", lease, err)
			}
			for _, server := range servers[:2] {
				until(t, "given back", func() bool { return !server.Exists("stock") })
			}
		})
	}
}

func TestMultiLost(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	servers, locks := nodes(t, 2, "stock")
	lease, err := Multi(locks...).Lock(ctx, LeaseTime(time.Hour))
	require.NoError(t, err)
	servers[1].Del("stock")
	expect.ErrorIs(t, lease.Leases()[1].Unlock(ctx), ErrNotHeld)
	receive(t, "the context ended", lease.Context().Done())
	expect.ErrorIs(t, lease.Unlock(ctx), ErrNotHeld)
	if cause := context.Cause(lease.Context()); cause == nil {
		t.Error("the context is alive")
	}
	if servers[0].Exists("stock") {
		t.Error("the other node is still locked")
	}
}

func TestMultiBadArguments(t *testing.T) {
	t.Parallel()
	_, locks := nodes(t, 1, "")
	if _, err := Multi().Lock(within(t)); err == nil {
		t.Error("a lock of nothing was had")
	}
	expect.ErrorIs(t, expect.ErrorOf(Multi(locks...).Lock(within(t))), ErrBadName)
	expect.ErrorIs(t, expect.ErrorOf(Multi(locks...).Lock(within(t), LeaseTime(0))), ErrBadTTL)
}

// onCluster starts a Redis Cluster for one test and returns a function that opens clients.
func onCluster(t *testing.T) (dial func(...ClientOption) *Client) {
	t.Helper()
	server, err := localserver.RedisNamed(topology.Cluster)
	require.NoError(t, err)
	service, err := server.Start(localservertest.Group(t), nil)
	require.NoError(t, err)
	hosts := strings.Split(strings.TrimPrefix(service.URL(), "redis+cluster://"), ",")
	return func(options ...ClientOption) *Client {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: hosts})
		c := New(rdb, options...)
		t.Cleanup(func() {
			_ = c.Close()
			_ = rdb.Close()
		})
		return c
	}
}

// TestCluster: on a cluster, every kind of lock excludes and wakes a waiter in another process,
// whichever nodes the two are connected to. Names with braces work, or are refused in one line.
func TestCluster(t *testing.T) {
	tier.Test(t, "needs servers")
	dial := onCluster(t)
	first := dial()
	second := dial()
	eachKind(t, func(t *testing.T, newLock maker) {
		for range 5 { // the names are in several slots, and so on several nodes
			n := strings.ReplaceAll(name(t), "/", ".")
			lease := mustLock(t, newLock(first, n), within(t))
			if other, err := newLock(second, n).TryLock(within(t)); err == nil {
				t.Fatalf("%s: two holders: %v", n, other)
			}
			granted := make(chan *Lease, 1)
			go func() {
				lease, err := newLock(second, n).Lock(context.WithoutCancel(within(t)))
				expect.NoError(t, err)
				granted <- lease
			}()
			mustUnlock(t, lease)
			mustUnlock(t, receive(t, "the lock in the other process", granted))
		}
		for _, n := range []string{"shop:{a}b{c", "{a}", "{x}}{"} {
			lease := mustLock(t, newLock(first, n+strings.ReplaceAll(t.Name(), "/", ".")), within(t))
			mustUnlock(t, lease)
		}
		for _, n := range []string{"a}b", "{}a", "a{b", "a{}b"} {
			if _, err := newLock(first, n).TryLock(within(t)); !errors.Is(err, ErrBadSlots) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v, want ErrBadSlots", n, err)
			}
			expect.ErrorIs(t, expect.ErrorOf(newLock(first, n).IsLocked(within(t))), ErrBadSlots, n)
		}
	})
}

// TestHashTag checks the examples of the Redis cluster specification.
func TestHashTag(t *testing.T) {
	for key, want := range map[string]string{
		"{user1000}.following": "user1000", "foo{}{bar}": "foo{}{bar}", "foo{{bar}}zap": "{bar", "foo{bar}{zap}": "bar", "a": "a", "a}b{c": "a}b{c",
	} {
		expect.Equal(t, hashTag(key), want, key)
	}
}
