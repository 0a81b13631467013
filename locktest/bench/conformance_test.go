package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis/rueidislock"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/locktest"
)

func TestMain(m *testing.M) {
	locktest.Child(open)
	os.Exit(m.Run())
}

// ttl of the leases here.
const ttl = 2 * time.Second

func newServer(t testing.TB) *server {
	t.Helper()
	return newServers(t, topology.Single)
}

// newServers starts a Redis of that topology.
func newServers(t testing.TB, topology string) *server {
	t.Helper()
	s, err := startServer(topology)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestConformance runs the checks on each lock. Their results are those that
// docs/guides/lock-in-your-program.md describes: a lock passes the checks of its claims and breaks
// the others, with the exceptions in expected.
func TestConformance(t *testing.T) {
	srv := newServer(t)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			for _, c := range locktest.Checks() {
				t.Run(c.Name, func(t *testing.T) {
					got := c.Examine(t.Context(), srv.subject(k, ttl))
					want, seen := expected(k, c.Name)
					if got.Verdict != want || got.Seen != seen {
						t.Errorf("%s\nwant %s, seen %s", got, want, seen)
					}
					t.Log(got)
				})
			}
		})
	}
}

// expected returns the known result of a check on a lock.
func expected(k kind, check string) (verdict, seen locktest.Verdict) {
	claims := map[string]bool{
		"Fairness": k.fair, "Renewal": k.renews, "LossSignal": k.signalsLoss, "FrozenServer": k.signalsLoss,
	}
	if claimed, optional := claims[check]; optional && !claimed {
		return locktest.NotClaimed, locktest.Breaks
	}
	// The renewal that is under way when the server falls silent is waited for
	// until a TTL after it was sent, half a TTL after the lease has run out.
	if check == "FrozenServer" && strings.HasPrefix(k.name, "rueidislock") {
		return locktest.Breaks, locktest.Breaks
	}
	return locktest.Holds, locktest.Holds
}

// TestRedislockLoss: the holder learns of a loss when it asks, by Refresh or
// TTL, and not before.
func TestRedislockLoss(t *testing.T) {
	srv := newServer(t)
	l, err := redislock.New(srv.rdb).Obtain(t.Context(), "a", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Refresh(t.Context(), time.Hour, nil); err != nil {
		t.Errorf("refresh of a lock that is held: %v", err)
	}
	if err := srv.rdb.Del(t.Context(), "a").Err(); err != nil {
		t.Fatal(err)
	}
	if left, err := l.TTL(t.Context()); left != 0 || err != nil {
		t.Errorf("TTL of a lost lock: %s, %v; want 0", left, err)
	}
	if err := l.Refresh(t.Context(), time.Hour, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("refresh of a lost lock: %v; want ErrNotObtained", err)
	}
}

// TestRedislockGivesUp: without a deadline Obtain waits for a TTL only.
func TestRedislockGivesUp(t *testing.T) {
	srv := newServer(t)
	if err := srv.rdb.Set(t.Context(), "a", "somebody", 0).Err(); err != nil {
		t.Fatal(err)
	}
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Millisecond)}
	_, err := redislock.New(srv.rdb).Obtain(context.WithoutCancel(t.Context()), "a", 50*time.Millisecond, options)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want DeadlineExceeded", err)
	}
}

// TestRedsyncLoss: Until goes on to name a time when the lock is long gone;
// Extend tells.
func TestRedsyncLoss(t *testing.T) {
	srv := newServer(t)
	m := redsync.New(goredis.NewPool(srv.rdb)).NewMutex("a", redsync.WithExpiry(time.Minute))
	if err := m.LockContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ok, err := m.ExtendContext(t.Context()); !ok || err != nil {
		t.Errorf("extend of a lock that is held: %t, %v", ok, err)
	}
	if err := srv.rdb.Del(t.Context(), "a").Err(); err != nil {
		t.Fatal(err)
	}
	if !m.Until().After(time.Now()) {
		t.Error("Until knows of the loss")
	}
	if ok, err := m.ExtendContext(t.Context()); ok || err == nil {
		t.Errorf("extend of a lost lock: %t, %v; want an error", ok, err)
	}
}

// TestRedsyncGivesUp: after 32 tries.
func TestRedsyncGivesUp(t *testing.T) {
	srv := newServer(t)
	if err := srv.rdb.Set(t.Context(), "a", "somebody", 0).Err(); err != nil {
		t.Fatal(err)
	}
	retries := 0
	m := redsync.New(goredis.NewPool(srv.rdb)).NewMutex("a", redsync.WithRetryDelayFunc(func(int) time.Duration {
		retries++
		return time.Millisecond
	}))
	var taken *redsync.ErrTaken
	if err := m.LockContext(t.Context()); !errors.As(err, &taken) || retries != 31 {
		t.Errorf("%v after %d retries; want ErrTaken after 31", err, retries)
	}
}

// TestRueidislockContexts: the lease ends with the context of its Lock, and
// the lock is free then.
func TestRueidislockContexts(t *testing.T) {
	srv := newServer(t)
	k, err := kindOf("rueidislock")
	if err != nil {
		t.Fatal(err)
	}
	c, err := k.connect(srv.redis.Addr, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	l, err := c.Lock(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-l.(rueidislockLease).Context().Done()
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := srv.remaining(t.Context(), k.keys("a")); left != 0 || err != nil {
		t.Errorf("%s left, %v; want a free lock", left, err)
	}
}

// TestRueidislockUnlockIsSilent: what the holder is told of a loss, it is told
// by the context; the release itself says nothing.
func TestRueidislockUnlockIsSilent(t *testing.T) {
	srv := newServer(t)
	k, err := kindOf("rueidislock")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range locktest.Checks() {
		if c.Name != "ReleaseSafety" {
			continue
		}
		if r := c.Examine(t.Context(), srv.subject(k, ttl)); !strings.Contains(r.Why, "said nothing and left") {
			t.Error(r)
		}
	}
}

// TestRueidislockNoLoop: the client reverts an attempt that the server answers after more than
// TryNextAfter, 20 ms. With NoLoopTracking the waiter gets no signal of that, and it sleeps
// although the lock is free. Without NoLoopTracking it wakes.
func TestRueidislockNoLoop(t *testing.T) {
	for name, c := range map[string]struct {
		option rueidislock.LockerOption
		sleeps bool
	}{
		"default":             {rueidislockDefault, false},
		"one key":             {rueidislockOneKey, false},
		"NoLoopTracking":      {rueidislock.LockerOption{NoLoopTracking: true}, true},
		"one key, no looping": {rueidislock.LockerOption{NoLoopTracking: true, KeyMajority: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			client, err := rueidislockKind(name, c.option).connect(srv.redis.Addr, ttl)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			warm, err := client.Lock(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if err := warm.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			thaw, err := srv.freeze(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*ttl)
			defer cancel()
			answer := make(chan error, 1)
			go func() {
				l, err := client.Lock(ctx, "a")
				if err == nil {
					err = l.Unlock(ctx)
				}
				answer <- err
			}()
			time.Sleep(500 * time.Millisecond) // the server is silent for longer than TryNextAfter
			if err := thaw(); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; (err != nil) != c.sleeps {
				t.Errorf("%v; sleeps on: want %t", err, c.sleeps)
			}
		})
	}
}

// TestCommandsCountScripts: the figure has what a script calls, too.
func TestCommandsCountScripts(t *testing.T) {
	srv := newServer(t)
	before, err := srv.commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.rdb.Eval(t.Context(), "redis.call('set', KEYS[1], 1) return redis.call('get', KEYS[1])", []string{"a"}).Err(); err != nil {
		t.Fatal(err)
	}
	after, err := srv.commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after-before != 4 { // INFO, EVAL, SET, GET
		t.Errorf("%d commands, want 4", after-before)
	}
}

// TestQuick: the command prints a row for each lock with figures in it.
func TestQuick(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run(t.Context(), []string{"-quick", "-markdown", "-only", "redislock-10ms"}, &out, &progress); err != nil {
		t.Fatalf("%v; %s", err, &progress)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[2], "| redislock-10ms | ") || strings.Count(lines[2], "/s · ") != 4 {
		t.Errorf("want a head and one row of four cells:\n%s", &out)
	}
	if got, want := strings.Count(progress.String(), "run 1/1"), 4; got != want {
		t.Errorf("%d lines of progress, want %d", got, want)
	}
}
