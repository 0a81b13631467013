package rlock

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/tier"
)

// testTimeout is how long a test waits for an event that must come. A busy machine may take seconds
// for a millisecond's work.
const testTimeout = 60 * time.Second

// servers holds the redis-server that most tests share. Each test uses its own names of locks.
var servers struct {
	group *localserver.Group
	redis *localserver.Redis
}

// quiet stops go-redis from logging errors of servers that tests kill.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	flag.Parse() // for testing.Short
	group, err := localserver.NewGroup()
	if err == nil && !tier.Quick() {
		servers.group = group
		servers.redis, err = localserver.StartRedis(group)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	idle := goleak.IgnoreCurrent()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(idle); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := group.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// A bench is a Redis with the tools of the tests.
type bench struct {
	addr string
	rdb  *redis.Client
	mini *miniredis.Miniredis // nil: a real server
}

// dial connects as a service would, except for shorter time-outs.
func dial(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 100})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (b *bench) client(t testing.TB, options ...ClientOption) *Client {
	t.Helper()
	c := New(b.rdb, options...)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func onBoth(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		mini := miniredis.RunT(t)
		test(t, &bench{mini.Addr(), dial(t, mini.Addr()), mini})
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, onServer(t))
	})
}

func onServer(t testing.TB) *bench {
	t.Helper()
	tier.Test(t, "needs servers")
	return &bench{servers.redis.Addr, dial(t, servers.redis.Addr), nil}
}

var names atomic.Int64

type maker func(*Client, string) *Lock

func eachKind(t *testing.T, test func(t *testing.T, newLock maker)) {
	for name, newLock := range map[string]maker{
		"plain": (*Client).NewLock, "fair": (*Client).NewFairLock, "fenced": (*Client).NewFencedLock,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLock)
		})
	}
}

func name(t testing.TB) string { return fmt.Sprintf("%s/%d", t.Name(), names.Add(1)) }

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testTimeout):
		t.Fatalf("still not: %s", what)
		panic("unreachable")
	}
}

func mustLock(t testing.TB, l *Lock, ctx context.Context, options ...Option) *Lease {
	t.Helper()
	lease, err := l.Lock(ctx, options...)
	require.NoError(t, err)
	return lease
}

func section(ctx context.Context, t testing.TB, l *Lock, inside func(*Lease)) {
	t.Helper()
	lease, err := l.Lock(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	inside(lease)
	expect.NoError(t, lease.Unlock(ctx))
}

// lineUp calls Lock for a held lock, and returns when the call waits.
func lineUp(ctx context.Context, t testing.TB, l *Lock, seen <-chan Event) <-chan *Lease {
	t.Helper()
	granted := make(chan *Lease, 1)
	go func() {
		lease, err := l.Lock(ctx)
		expect.NoError(t, err)
		granted <- lease
	}()
	await(t, seen, Waiting)
	return granted
}

func mustUnlock(t testing.TB, lease *Lease) {
	t.Helper()
	require.NoError(t, lease.Unlock(context.Background()))
}

func events() (ClientOption, <-chan Event) {
	c := make(chan Event, 10_000)
	return Observer(func(e Event) { c <- e }), c
}

func await(t testing.TB, c <-chan Event, kind Kind) Event {
	t.Helper()
	for {
		if e := receive(t, string(kind), c); e.Kind == kind {
			return e
		}
	}
}
