package rlock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The watchdog's tests have a timeout of 3 s and look a renewal later: a
// machine that stands still for seconds may lose the lease, and is told from
// a broken watchdog by the cause of the context.
const shortTimeout = 3 * time.Second

func TestWatchdogRenews(t *testing.T) {
	t.Parallel()
	b := onServer(t)
	ctx := within(t)
	observer, seen := events()
	lock := b.client(t, WatchdogTimeout(shortTimeout), observer).NewLock(name(t))
	lease := mustLock(t, lock, ctx)
	low := shortTimeout
	for renewed := 0; renewed < 4; {
		if e := receive(t, "renewed", seen); e.Kind == Renewed {
			renewed++
			pttl := b.rdb.PTTL(ctx, lock.keys.lock).Val()
			low = min(low, pttl)
		}
		if errors.Is(context.Cause(lease.Context()), ErrLost) {
			t.Skip("this machine stood still for 3 s")
		}
	}
	// 4 renewals are 4 s after the grant: without them it had run out.
	if low <= 0 {
		t.Errorf("TTL %v after a renewal", low)
	}
	mustUnlock(t, lease)
}

// TestWatchdogStops: nobody extends a lock behind its end.
func TestWatchdogStops(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		stop func(t *testing.T, c *Client, cancel context.CancelFunc, lease *Lease)
	}{
		{"Unlock", func(t *testing.T, _ *Client, _ context.CancelFunc, lease *Lease) { mustUnlock(t, lease) }},
		{"context", func(_ *testing.T, _ *Client, cancel context.CancelFunc, _ *Lease) { cancel() }},
		{"Close", func(_ *testing.T, c *Client, _ context.CancelFunc, _ *Lease) { _ = c.Close() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := onServer(t)
			ctx, cancel := context.WithCancel(within(t))
			defer cancel()
			observer, seen := events()
			c := b.client(t, WatchdogTimeout(shortTimeout), observer)
			lease := mustLock(t, c.NewLock(name(t)), ctx)
			await(t, seen, Renewed)
			row.stop(t, c, cancel, lease)
			until(t, "run out or deleted", func() bool {
				return b.rdb.Exists(within(t), lease.lock.keys.lock).Val() == 0
			})
			h := lease.hold
			until(t, "no renewal armed", func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				return h.renewing == nil && (h.stopped || h.watched == 0) && !h.renewal.Stop()
			})
		})
	}
}

// TestLateRenewal: a renewal that comes after the release revives nothing.
func TestLateRenewal(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		lease := mustLock(t, b.client(t).NewLock(name(t)), ctx)
		mustUnlock(t, lease)
		if held, err := lease.hold.sendRenewal(ctx, time.Hour); held || err != nil {
			t.Errorf("renewed %v, %v after the release", held, err)
		}
		if n := b.rdb.Exists(ctx, lease.lock.keys.lock).Val(); n != 0 {
			t.Error("the lock is back")
		}
	})
}

func TestLostLease(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		observer, seen := events()
		c := b.client(t, WatchdogTimeout(shortTimeout), observer)
		outer := mustLock(t, c.NewLock(name(t)), ctx)
		inner := mustLock(t, outer.lock, outer.Context())
		b.rdb.Del(ctx, outer.lock.keys.lock)
		for _, lease := range []*Lease{inner, outer} {
			receive(t, "the context ended", lease.Context().Done())
		}
		if cause := context.Cause(outer.Context()); !errors.Is(cause, ErrLost) {
			t.Errorf("cause %v, want ErrLost", cause)
		}
		await(t, seen, Lost)
		for _, lease := range []*Lease{inner, outer} {
			if err := lease.Unlock(ctx); !errors.Is(err, ErrNotHeld) {
				t.Errorf("Unlock: %v, want ErrNotHeld", err)
			}
		}
	})
}

// TestRetakenByTheSameHolder: the leases of before have no part in it.
func TestRetakenByTheSameHolder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := WithHolder(within(t), NewHolder())
		lock := b.client(t).NewLock(name(t))
		old := mustLock(t, lock, ctx)
		b.rdb.Del(ctx, lock.keys.lock)
		current := mustLock(t, lock, ctx)
		if cause := context.Cause(old.Context()); !errors.Is(cause, ErrLost) {
			t.Errorf("the old lease: %v, want ErrLost", cause)
		}
		if err := old.Unlock(ctx); !errors.Is(err, ErrNotHeld) {
			t.Errorf("the old lease: %v, want ErrNotHeld", err)
		}
		if n, _ := lock.HoldCount(ctx); n != 1 || current.HoldCount() != 1 {
			t.Errorf("HoldCount %d and %d, want 1", n, current.HoldCount())
		}
		mustUnlock(t, current)
	})
}

func TestLeaseTimeRunsOut(t *testing.T) {
	t.Parallel()
	b := onServer(t)
	ctx := within(t)
	lock := b.client(t).NewLock(name(t))
	asked := time.Now()
	lease := mustLock(t, lock, ctx, LeaseTime(300*time.Millisecond))
	receive(t, "the context ended", lease.Context().Done())
	if cause := context.Cause(lease.Context()); !errors.Is(cause, ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	if lasted, want := time.Since(asked), 300*time.Millisecond-margin(300*time.Millisecond); lasted < want {
		t.Errorf("the lease lasted %v, want %v", lasted, want)
	}
	until(t, "run out in Redis", func() bool { return b.rdb.Exists(ctx, lock.keys.lock).Val() == 0 })
	if err := lease.Unlock(ctx); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Unlock: %v, want ErrNotHeld", err)
	}
}

func TestMargin(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ ttl, want time.Duration }{
		{time.Millisecond, 500 * time.Microsecond},
		{100 * time.Millisecond, 3 * time.Millisecond},
		{30 * time.Second, 302 * time.Millisecond},
	} {
		if got := margin(row.ttl); got != row.want {
			t.Errorf("margin(%v) = %v, want %v", row.ttl, got, row.want)
		}
	}
}
