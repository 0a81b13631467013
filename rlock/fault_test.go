package rlock

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

func ownServer(t *testing.T) (*bench, *localserver.Redis) {
	t.Helper()
	server := localservertest.Redis(t)
	return &bench{server.Addr, dial(t, server.Addr), nil}, server
}

func pause(t *testing.T, server *localserver.Redis) (resume func()) {
	t.Helper()
	require.NoError(t, server.Signal(syscall.SIGSTOP))
	resume = func() { _ = server.Signal(syscall.SIGCONT) }
	t.Cleanup(resume)
	return resume
}

// TestHungRedis: a Redis accepts connections and never answers. The lease ends before its TTL, and no
// call lasts longer than its context.
func TestHungRedis(t *testing.T) {
	t.Parallel()
	b, server := ownServer(t)
	c := b.client(t, WatchdogTimeout(shortTimeout))
	lock := c.NewLock(name(t))
	lease := mustLock(t, lock, within(t))
	held := lease.hold
	resume := pause(t, server)

	ctx, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
	defer cancel()
	for what, call := range map[string]func() error{
		"Lock": func() error { _, err := c.NewLock(name(t)).Lock(ctx); return err },
		"fair": func() error { _, err := c.NewFairLock(name(t)).Lock(ctx); return err },
		"look": func() error { _, err := lock.IsLocked(ctx); return err },
	} {
		expect.ErrorIs(t, call(), context.DeadlineExceeded, what)
	}
	expect.ErrorIs(t, expect.ErrorOf(c.NewLock(name(t)).Lock(within(t), Wait(50*time.Millisecond))), ErrNoAnswer, "Wait")

	receive(t, "the lease ended", lease.Context().Done())
	expect.ErrorIs(t, context.Cause(lease.Context()), ErrLost, "cause")
	held.mu.Lock()
	until := held.until
	held.mu.Unlock()
	if early := time.Until(until); early > 0 {
		t.Errorf("ended %v before its time", early)
	}
	if err := lease.Unlock(ctx); !errors.Is(err, ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Unlock: got %v, want ErrNoAnswer and the deadline", err)
	}
	resume()
	mustUnlock(t, mustLock(t, lock, within(t)))
}

// TestLeaseEndsBeforeItsTTL: the deadline counts from the time when the command was sent, so it
// comes before the end of the TTL, which Redis starts when the command arrives.
func TestLeaseEndsBeforeItsTTL(t *testing.T) {
	t.Parallel()
	ttl := time.Second
	for _, sent := range []time.Time{time.Now(), time.Now().Add(-ttl / 2)} {
		ended := sent.Add(ttl - margin(ttl))
		h := newHold(t.Context(), &Client{clock: systemClock{}}, nil)
		h.mu.Lock()
		h.extend(sent, ttl)
		h.deadline.Stop()
		got := h.until
		h.mu.Unlock()
		if !got.Equal(ended) || !got.Before(sent.Add(ttl)) {
			t.Errorf("sent at %v: until %v, want %v", sent, got, ended)
		}
	}
}

// TestUnlockWithAnEndedContext: Unlock gives the lock back although its context has ended.
func TestUnlockWithAnEndedContext(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancel(within(t))
		lock := b.client(t).NewLock(name(t))
		lease := mustLock(t, lock, ctx)
		cancel()
		_ = lease.Unlock(ctx) // nil or ErrNoAnswer
		mustUnlock(t, mustLock(t, lock, within(t)))
	})
}

// TestDenied: a caller learns that another holder has the lock, and asks again when the wait ends.
// It gets ErrNotObtained, not ErrNoAnswer.
func TestDenied(t *testing.T) {
	t.Parallel()
	b, server := ownServer(t)
	c := b.client(t)
	lock := c.NewLock(name(t))
	held := mustLock(t, lock, within(t))
	ctx := WithHolder(within(t), NewHolder())
	holder, _ := holderOf(ctx)
	r, err := c.request(time.Minute, nil)
	require.NoError(t, err)
	second := &claim{lock: lock, slot: holder.enter(c, lock.keys.lock), ctx: ctx, request: r}
	defer second.slot.leave()
	if lease, _, err := second.try(ctx); lease != nil || err != nil {
		t.Fatalf("got %v, %v; another holder has it", lease, err)
	}
	resume := pause(t, server)
	over, cancel := withTimeout(ctx, c.clock, 20*time.Millisecond, errWaitOver)
	defer cancel()
	if _, _, err := second.try(over); !errors.Is(err, ErrNotObtained) {
		t.Errorf("got %v, want ErrNotObtained", err)
	}
	resume()
	mustUnlock(t, held)
}

// TestAbandonedAttempt: a lock that Redis grants after the caller has stopped waiting is given
// back.
func TestAbandonedAttempt(t *testing.T) {
	t.Parallel()
	b, server := ownServer(t)
	c := b.client(t)
	for _, lock := range []*Lock{c.NewLock(name(t)), c.NewFairLock(name(t))} {
		mustUnlock(t, mustLock(t, lock, within(t))) // opens a connection
		resume := pause(t, server)
		expect.ErrorIs(t, expect.ErrorOf(lock.TryLock(within(t), Wait(20*time.Millisecond))), ErrNoAnswer)
		resume()
		// Otherwise the lock would stay until the watchdog timeout of 30 s.
		lease, err := lock.TryLock(within(t), Wait(20*time.Second))
		require.NoError(t, err)
		mustUnlock(t, lease)
	}
}

// TestRedisKilled: all waiters soon get an error.
func TestRedisKilled(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, newLock maker) {
		b, server := ownServer(t)
		ctx := within(t)
		observer, seen := events()
		c := b.client(t, observer)
		lock := newLock(c, name(t))
		lease := mustLock(t, lock, ctx)
		failed := make(chan error, 8)
		for range cap(failed) {
			go func() {
				_, err := lock.Lock(ctx)
				failed <- err
			}()
		}
		for range cap(failed) {
			await(t, seen, Waiting)
		}
		require.NoError(t, server.Kill())
		for range cap(failed) {
			err := receive(t, "the wait ended", failed)
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want an error of the connection", err)
			}
		}
		require.NoError(t, server.Start())
		if err := lease.Unlock(ctx); !errors.Is(err, ErrNotHeld) {
			t.Logf("Unlock after the restart: %v", err) // Unlock may also use a stale connection
		}
		mustUnlock(t, mustLock(t, lock, ctx))
	})
}

// TestResubscribed: a broken subscription may have missed a message, so the waiters ask as soon as
// it is replaced.
func TestResubscribed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		observer, seen := events()
		lock := b.client(t, observer).NewLock(name(t))
		b.rdb.HSet(ctx, lock.keys.lock, "java:1", 1)
		b.rdb.PExpire(ctx, lock.keys.lock, time.Hour)
		granted := lineUp(ctx, t, lock, seen)
		subscriber := lock.client.subscriber
		until(t, "subscribed", func() bool {
			subscriber.mu.Lock()
			defer subscriber.mu.Unlock()
			t, used := subscriber.topics.Get(lock.keys.channel)
			return used && t.confirmed
		})
		b.rdb.Del(ctx, lock.keys.lock)
		subscriber.mu.Lock()
		subscriber.renewConnection()
		subscriber.mu.Unlock()
		subscriber.steerSoon()
		mustUnlock(t, receive(t, "granted", granted))
	})
}

// TestOneSubscription: one connection and one SUBSCRIBE serve all waiters, and a channel without
// users is unsubscribed.
func TestOneSubscription(t *testing.T) {
	t.Parallel()
	b, _ := ownServer(t)
	ctx := within(t)
	observer, seen := events()
	c := b.client(t, observer)
	name := name(t)
	lease := mustLock(t, c.NewLock(name), ctx)
	done := make(chan struct{}, 8)
	for range cap(done) {
		go func() {
			section(ctx, t, c.NewLock(name), func(*Lease) {})
			done <- struct{}{}
		}()
	}
	for range cap(done) {
		await(t, seen, Waiting)
	}
	channel := namesOf(name).channel
	listeners := func() int64 { return b.rdb.PubSubNumSub(ctx, channel).Val()[channel] }
	until(t, "subscribed", func() bool { return listeners() == 1 })
	mustUnlock(t, lease)
	for range cap(done) {
		receive(t, "done", done)
	}
	until(t, "unsubscribed", func() bool { return listeners() == 0 })
}
