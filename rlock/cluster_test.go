package rlock

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// onCluster starts a Redis Cluster for one test and returns a function that opens clients.
func onCluster(t *testing.T) (dial func(...ClientOption) *Client) {
	t.Helper()
	server, err := localserver.RedisNamed(topology.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	service, err := server.Start(localservertest.Group(t), nil)
	if err != nil {
		t.Fatal(err)
	}
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
		for range 5 { // in several slots, and therefore on several nodes
			n := strings.ReplaceAll(name(t), "/", ".")
			lease := mustLock(t, newLock(first, n), within(t))
			if other, err := newLock(second, n).TryLock(within(t)); err == nil {
				t.Fatalf("%s: two holders: %v", n, other)
			}
			granted := make(chan *Lease, 1)
			go func() {
				lease, err := newLock(second, n).Lock(context.WithoutCancel(within(t)))
				if err != nil {
					t.Error(err)
				}
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
			if _, err := newLock(first, n).IsLocked(within(t)); !errors.Is(err, ErrBadSlots) {
				t.Errorf("%q: %v, want ErrBadSlots", n, err)
			}
		}
	})
}

// TestHashTag has the examples of the Redis cluster specification.
func TestHashTag(t *testing.T) {
	for key, want := range map[string]string{
		"{user1000}.following": "user1000", "foo{}{bar}": "foo{}{bar}", "foo{{bar}}zap": "{bar", "foo{bar}{zap}": "bar", "a": "a", "a}b{c": "a}b{c",
	} {
		if got := hashTag(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}
