package rlock

import (
	"testing"
)

// TestRaiseToken: after Redis has lost the counter, RaiseToken makes tokens continue above the
// greatest one seen elsewhere. It never lowers the counter.
func TestRaiseToken(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		lock := b.client(t).NewFencedLock(name(t))
		for _, step := range []struct{ seen, token int64 }{{41, 42}, {7, 43}} {
			if err := lock.RaiseToken(within(t), step.seen); err != nil {
				t.Fatal(err)
			}
			lease := mustLock(t, lock, within(t))
			if got := lease.Token(); got != step.token {
				t.Errorf("token %d after %d was seen, want %d", got, step.seen, step.token)
			}
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
			if got, want := lease.Token(), int64(i+1); got != want {
				t.Errorf("token %d, want %d", got, want)
			}
		}
		if got := b.rdb.Get(ctx, "redisson_lock_token:{"+lock.keys.lock+"}").Val(); got != "4" {
			t.Errorf("counter %q, want 4", got)
		}
		if token, err := lock.Token(ctx); token != 4 || err != nil {
			t.Errorf("token %d, %v, want 4", token, err)
		}
		mustUnlock(t, third)
		if lease := mustLock(t, b.client(t).NewLock(name(t)), ctx); lease.Token() != 0 {
			t.Errorf("a plain lock has token %d", lease.Token())
		}
	})
}
