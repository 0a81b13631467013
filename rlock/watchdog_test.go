package rlock

import (
	"context"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
)

// shortTimeout is a lease that the watchdog renews every second. If the machine stalls for too long,
// the lease is lost, as it must be, and the test starts again.
const shortTimeout = 3 * time.Second

// renewed returns a lease after the given number of renewals.
func renewed(t *testing.T, lock *Lock, ctx context.Context, seen <-chan Event, times int) *Lease {
	t.Helper()
	for {
		lease := mustLock(t, lock, ctx)
		for left := times; left > 0; {
			switch e := receive(t, "renewed or lost", seen); e.Kind {
			case Renewed:
				left--
			case Lost:
				left = -1
			}
			if left == 0 {
				return lease
			}
		}
		_ = lease.Unlock(ctx) // the error is ErrNotHeld, unless the machine stalled only after the deadline
	}
}

func TestWatchdogRenews(t *testing.T) {
	t.Parallel()
	b := onServer(t)
	ctx := within(t)
	observer, seen := events()
	lock := b.client(t, WatchdogTimeout(shortTimeout), observer).NewLock(name(t))
	// The fourth renewal is 4 s after the grant, longer than the lease of 3 s.
	lease := renewed(t, lock, ctx, seen, 4)
	lease.hold.mu.Lock()
	deadline := lease.hold.until
	lease.hold.mu.Unlock()
	if pttl := b.rdb.PTTL(ctx, lock.keys.lock).Val(); pttl <= 0 && time.Now().Before(deadline) {
		t.Errorf("TTL %v of a lock that was renewed", pttl)
	}
	if err := lease.Unlock(ctx); err != nil && time.Now().Before(deadline) {
		t.Error(err)
	}
}

// TestRenewEvery: the watchdog renews at the interval of RenewEvery.
func TestRenewEvery(t *testing.T) {
	t.Parallel()
	b := onServer(t)
	observer, seen := events()
	// With the default, a third of an hour, the first renewal would come after twenty minutes.
	lock := b.client(t, WatchdogTimeout(time.Hour), RenewEvery(50*time.Millisecond), observer).NewLock(name(t))
	mustUnlock(t, renewed(t, lock, within(t), seen, 3))
	for _, every := range []time.Duration{0, -time.Second, time.Hour, 2 * time.Hour} {
		lock := b.client(t, WatchdogTimeout(time.Hour), RenewEvery(every)).NewLock(name(t))
		expect.ErrorIs(t, expect.ErrorOf(lock.Lock(within(t))), ErrBadTTL, "every", every)
	}
}

// TestWatchdogStops: after its end, a lock is no longer extended.
func TestWatchdogStops(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		stop func(t *testing.T, c *Client, cancel context.CancelFunc, lease *Lease)
	}{
		{"Unlock", func(t *testing.T, _ *Client, _ context.CancelFunc, lease *Lease) { _ = lease.Unlock(within(t)) }},
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
			lease := renewed(t, c.NewLock(name(t)), ctx, seen, 1)
			row.stop(t, c, cancel, lease)
			until(t, "run out or deleted", func() bool {
				return b.rdb.Exists(within(t), lease.lock.keys.lock).Val() == 0
			})
			h := lease.hold
			until(t, "no renewal armed", func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				return h.renewing == nil && (h.stopped || h.renewedLeases == 0) && !h.renewal.Stop()
			})
		})
	}
}

// TestLateRenewal: a renewal that arrives after the release does not revive the lock.
func TestLateRenewal(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		lease := mustLock(t, b.client(t).NewLock(name(t)), ctx)
		mustUnlock(t, lease)
		if held, err := lease.hold.sendRenewal(ctx, time.Hour); held || err != nil {
			t.Errorf("renewed %v, %v after the release", held, err)
		}
		expect.Equal(t, b.rdb.Exists(ctx, lease.lock.keys.lock).Val(), 0, "the lock is back")
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
		expect.ErrorIs(t, context.Cause(outer.Context()), ErrLost, "cause")
		await(t, seen, Lost)
		for _, lease := range []*Lease{inner, outer} {
			expect.ErrorIs(t, lease.Unlock(ctx), ErrNotHeld, "Unlock")
		}
	})
}

// TestRetakenByTheSameHolder: earlier leases do not belong to the new hold.
func TestRetakenByTheSameHolder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := WithHolder(within(t), NewHolder())
		lock := b.client(t).NewLock(name(t))
		old := mustLock(t, lock, ctx)
		b.rdb.Del(ctx, lock.keys.lock)
		current := mustLock(t, lock, ctx)
		expect.ErrorIs(t, context.Cause(old.Context()), ErrLost, "the old lease")
		expect.ErrorIs(t, old.Unlock(ctx), ErrNotHeld, "the old lease")
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
	expect.ErrorIs(t, context.Cause(lease.Context()), ErrLost, "cause")
	if lasted, want := time.Since(asked), 300*time.Millisecond-margin(300*time.Millisecond); lasted < want {
		t.Errorf("the lease lasted %v, want %v", lasted, want)
	}
	until(t, "run out in Redis", func() bool { return b.rdb.Exists(ctx, lock.keys.lock).Val() == 0 })
	expect.ErrorIs(t, lease.Unlock(ctx), ErrNotHeld, "Unlock")
}

func TestMargin(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ ttl, want time.Duration }{
		{time.Millisecond, 500 * time.Microsecond},
		{100 * time.Millisecond, 3 * time.Millisecond},
		{30 * time.Second, 302 * time.Millisecond},
	} {
		expect.Equal(t, margin(row.ttl), row.want, "margin", row.ttl)
	}
}
