package rlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

func TestTryLock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		lock := b.client(t).NewLock(name(t))
		lease, err := lock.TryLock(ctx)
		require.NoError(t, err)
		expect.ErrorIs(t, expect.ErrorOf(lock.TryLock(ctx)), ErrNotObtained)
		expect.ErrorIs(t, expect.ErrorOf(lock.TryLock(ctx, Wait(time.Second))), ErrNotObtained, "after a wait")
		expect.ErrorIs(t, expect.ErrorOf(lock.Lock(ctx, Wait(time.Second))), ErrNotObtained, "Lock with Wait")
		mustUnlock(t, lease)
		if lease, err = lock.TryLock(ctx); err != nil {
			t.Fatalf("after Unlock: %v", err)
		}
		mustUnlock(t, lease)
	})
}

func TestReentry(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, newLock maker) {
		onBoth(t, func(t *testing.T, b *bench) {
			ctx := WithHolder(within(t), NewHolder())
			lock := newLock(b.client(t), name(t))
			first := mustLock(t, lock, ctx)
			second := mustLock(t, lock, ctx)
			third := mustLock(t, lock, second.Context())
			if n, err := lock.HoldCount(ctx); n != 3 || err != nil || third.HoldCount() != 3 {
				t.Errorf("HoldCount %d and %d (%v), want 3", n, third.HoldCount(), err)
			}
			expect.ErrorIs(t, expect.ErrorOf(lock.TryLock(within(t))), ErrNotObtained, "another holder")
			// A holder may unlock its leases in any order.
			for i, lease := range []*Lease{first, third, second} {
				mustUnlock(t, lease)
				if n, _ := lock.HoldCount(ctx); n != 2-i {
					t.Errorf("HoldCount %d after %d unlocks", n, i+1)
				}
				if lease.Context().Err() == nil {
					t.Error("the context of an unlocked lease is alive")
				}
			}
			if locked, err := lock.IsLocked(ctx); locked || err != nil {
				t.Errorf("IsLocked %v (%v) in the end", locked, err)
			}
		})
	})
}

func TestUnlockTwiceAndByStranger(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		c := b.client(t)
		lock := c.NewLock(name(t))
		old := mustLock(t, lock, ctx)
		mustUnlock(t, old)
		current := mustLock(t, lock, ctx)
		expect.ErrorIs(t, old.Unlock(ctx), ErrNotHeld, "unlocked twice")

		stolen := c.NewLock(name(t))
		lease := mustLock(t, stolen, ctx)
		b.rdb.Del(ctx, stolen.keys.lock)
		thief := mustLock(t, b.client(t).NewLock(stolen.keys.lock), ctx)
		expect.ErrorIs(t, lease.Unlock(ctx), ErrNotHeld, "after a theft")
		for _, l := range []*Lease{current, thief} {
			expect.Equal(t, b.rdb.HLen(ctx, l.lock.keys.lock).Val(), 1, "fields of the other's lock")
			mustUnlock(t, l)
		}
	})
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	b := onServer(t)
	c := b.client(t)
	for _, row := range []struct {
		name     string
		lock     string
		lease    time.Duration
		want     error
		watchdog time.Duration
	}{
		{"no name", "", time.Second, ErrBadName, time.Second},
		{"513 bytes", strings.Repeat("x", 513), time.Second, ErrBadName, time.Second},
		{"no lease", "n", 0, ErrBadTTL, time.Second},
		{"negative lease", "n", -time.Second, ErrBadTTL, time.Second},
		{"below a millisecond", "n", time.Millisecond - 1, ErrBadTTL, time.Second},
	} {
		expect.ErrorIs(t, expect.ErrorOf(c.NewLock(row.lock).Lock(within(t), LeaseTime(row.lease))), row.want, row.name)
	}
	expect.ErrorIs(t, expect.ErrorOf(b.client(t, WatchdogTimeout(0)).NewLock("n").Lock(within(t))), ErrBadTTL, "watchdog of 0")
	expect.ErrorIs(t, expect.ErrorOf(c.NewLock("").IsLocked(within(t))), ErrBadName, "inspect")
}

func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		c := b.client(t)
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		long := make([]byte, maxName)
		for i := range long {
			long[i] = byte(rand.N(256))
		}
		for _, name := range []string{"\x00", "\xff\xfe", "{", "}{", " ", "a\r\nb", string(all), string(long)} {
			for _, lock := range []*Lock{c.NewLock(name), c.NewFairLock(name), c.NewFencedLock(name)} {
				lease, err := lock.TryLock(ctx, Wait(testTimeout))
				if err != nil {
					t.Errorf("%q: %v", name, err)
					continue
				}
				expect.Equal(t, b.rdb.HLen(ctx, name).Val(), 1, name, "fields")
				mustUnlock(t, lease)
			}
		}
	})
}

func TestCancelWhileWaiting(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		observer, seen := events()
		c := b.client(t, observer)
		for _, lock := range []*Lock{c.NewLock(name(t)), c.NewFairLock(name(t))} {
			lease := mustLock(t, lock, within(t))
			ctx, cancel := context.WithCancelCause(within(t))
			failed := make(chan error, 1)
			go func() {
				_, err := lock.Lock(ctx)
				failed <- err
			}()
			await(t, seen, Waiting)
			why := errors.New("hung up")
			cancel(why)
			expect.ErrorIs(t, receive(t, "the wait ended", failed), why)
			until(t, "it left the queue", func() bool {
				return b.rdb.Exists(context.Background(), lock.keys.queue, lock.keys.timeouts).Val() == 0
			})
			mustUnlock(t, lease)
			mustUnlock(t, mustLock(t, lock, within(t)))
		}
	})
}

func TestForceUnlock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		observer, seen := events()
		c := b.client(t, observer)
		for _, lock := range []*Lock{c.NewLock(name(t)), c.NewFairLock(name(t))} {
			ctx := within(t)
			lease := mustLock(t, lock, ctx)
			granted := lineUp(ctx, t, lock, seen)
			if freed, err := lock.ForceUnlock(ctx); !freed || err != nil {
				t.Errorf("ForceUnlock: %v, %v", freed, err)
			}
			next := receive(t, "granted", granted)
			expect.ErrorIs(t, lease.Unlock(ctx), ErrNotHeld)
			mustUnlock(t, next)
			if freed, err := lock.ForceUnlock(ctx); freed || err != nil {
				t.Errorf("ForceUnlock of a free lock: %v, %v", freed, err)
			}
		}
	})
}

func TestInspect(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		lock := b.client(t).NewLock(name(t))
		if locked, err := lock.IsLocked(ctx); locked || err != nil {
			t.Errorf("IsLocked %v, %v", locked, err)
		}
		if ttl, err := lock.RemainingTTL(ctx); ttl != 0 || err != nil {
			t.Errorf("RemainingTTL %v, %v of a free lock", ttl, err)
		}
		lease := mustLock(t, lock, ctx, LeaseTime(time.Hour))
		if locked, err := lock.IsLocked(ctx); !locked || err != nil {
			t.Errorf("IsLocked %v, %v", locked, err)
		}
		if ttl, err := lock.RemainingTTL(ctx); ttl <= 0 || ttl > time.Hour || err != nil {
			t.Errorf("RemainingTTL %v, %v", ttl, err)
		}
		if n, err := lock.HoldCount(ctx); n != 0 || err != nil {
			t.Errorf("HoldCount %d, %v without a holder", n, err)
		}
		if n, err := lock.HoldCount(lease.Context()); n != 1 || err != nil {
			t.Errorf("HoldCount %d, %v", n, err)
		}
		mustUnlock(t, lease)
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := within(t)
		observer, seen := events()
		c := New(b.rdb, observer)
		lock := c.NewLock(name(t))
		lease := mustLock(t, lock, ctx)
		failed := make(chan error, 2)
		for _, l := range []*Lock{lock, c.NewFairLock(lock.keys.lock)} {
			go func() {
				_, err := l.Lock(ctx)
				failed <- err
			}()
			await(t, seen, Waiting)
		}
		for range 2 { // the second call does nothing
			expect.NoError(t, c.Close())
		}
		for range 2 {
			expect.ErrorIs(t, receive(t, "the wait ended", failed), ErrClosed)
		}
		expect.ErrorIs(t, expect.ErrorOf(lock.TryLock(ctx)), ErrClosed)
		expect.ErrorIs(t, context.Cause(lease.Context()), ErrClosed, "the lease's context")
		mustUnlock(t, lease)
	})
}

// TestRaiseToken: after Redis has lost the counter, RaiseToken makes tokens continue above the
// greatest one seen elsewhere. It never lowers the counter.
func TestRaiseToken(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		lock := b.client(t).NewFencedLock(name(t))
		for _, step := range []struct{ seen, token int64 }{{41, 42}, {7, 43}} {
			require.NoError(t, lock.RaiseToken(within(t), step.seen))
			lease := mustLock(t, lock, within(t))
			expect.Equal(t, lease.Token(), step.token, "token after", step.seen)
			mustUnlock(t, lease)
		}
	})
}

// TestTokensGrow: tokens grow, also across a release, a reentry, a handover and a lost lock.
func TestTokensGrow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		ctx := WithHolder(within(t), NewHolder())
		lock := b.client(t).NewFencedLock(name(t))
		if token, err := lock.Token(ctx); token != 0 || err != nil {
			t.Errorf("token %d, %v before the first grant", token, err)
		}
		first := mustLock(t, lock, ctx)
		inner := mustLock(t, lock, ctx)
		mustUnlock(t, inner)
		mustUnlock(t, first)
		second := mustLock(t, lock, ctx)
		b.rdb.Del(ctx, lock.keys.lock)
		third := mustLock(t, lock, within(t))
		for i, lease := range []*Lease{first, inner, second, third} {
			expect.Equal(t, lease.Token(), int64(i+1), "token")
		}
		expect.Equal(t, b.rdb.Get(ctx, "redisson_lock_token:{"+lock.keys.lock+"}").Val(), "4", "counter")
		if token, err := lock.Token(ctx); token != 4 || err != nil {
			t.Errorf("token %d, %v, want 4", token, err)
		}
		mustUnlock(t, third)
		expect.Equal(t, mustLock(t, b.client(t).NewLock(name(t)), ctx).Token(), 0, "a plain lock")
	})
}

// handClock is a clock whose timers fire when the test says so.
type handClock struct {
	systemClock

	mu    sync.Mutex
	rings []func()
}

func (c *handClock) AfterFunc(_ time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rings = append(c.rings, f)
	return handTimer{}
}

func (c *handClock) NewTimer(time.Duration) (Timer, <-chan time.Time) { return handTimer{}, nil }

func (c *handClock) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.rings {
		go f()
	}
	c.rings = nil
}

type handTimer struct{}

func (handTimer) Reset(time.Duration) bool { return true }
func (handTimer) Stop() bool               { return true }

// TestTimekeeper: a wait ends exactly when the given clock says so.
func TestTimekeeper(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		lock := name(t)
		held := mustLock(t, b.client(t).NewLock(lock), within(t))
		clock := &handClock{}
		observe, seen := events()
		waiting := make(chan error, 1)
		client := b.client(t, Timekeeper(clock), observe)
		go func() {
			_, err := client.NewLock(lock).TryLock(within(t), Wait(time.Millisecond))
			waiting <- err
		}()
		await(t, seen, Waiting) // 1 ms of real time does not count
		select {
		case err := <-waiting:
			t.Fatalf("the wait has ended by itself: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		clock.ring()
		expect.ErrorIs(t, receive(t, "the end of the wait", waiting), ErrNotObtained)
		mustUnlock(t, held)
	})
}
