package purchase

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestHoldUp: who comes back too early, and is refused again, hears so later; nobody else.
func TestHoldUp(t *testing.T) {
	const wait, told = 4 * time.Second, 3 * time.Second
	k := &Counter{Wait: wait}
	refusal := error(&Overloaded{RetryAfter: told})
	for name, c := range map[string]struct {
		after     time.Duration // the first refusal
		purchaser string
		err       error
		least     time.Duration
		most      time.Duration
	}{
		"at once":             {0, "ann", refusal, wait / 4, wait / 2},
		"a little early":      {told - time.Second/2, "ann", refusal, time.Second / 2, time.Second / 2},
		"in time":             {told, "ann", refusal, 0, 0},
		"another buyer":       {0, "bob", refusal, 0, 0},
		"sold":                {0, "ann", nil, 0, 0},
		"busy, and let in":    {0, "ann", ErrBusy, 0, 0},
		"nobody has told one": {0, "", refusal, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := RememberReturns(t.Context(), nil)
				took := func(purchaser string, err error) time.Duration {
					start := time.Now()
					k.holdUp(ctx, purchaser, err)
					return time.Since(start)
				}
				if first := took("ann", refusal); first != 0 {
					t.Errorf("the first refusal is held up for %s", first)
				}
				time.Sleep(c.after)
				if got := took(c.purchaser, c.err); got < c.least || got > c.most {
					t.Errorf("held up for %s, want %s to %s", got, c.least, c.most)
				}
			})
		})
	}
}

// TestHoldUpEnds: who hangs up is held no longer, and without RememberReturns nobody is.
func TestHoldUpEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &Counter{Wait: 4 * time.Second}
		refusal := &Overloaded{RetryAfter: time.Second}
		gone, hangUp := context.WithCancel(RememberReturns(t.Context(), nil))
		hangUp()
		start := time.Now()
		for _, ctx := range []context.Context{gone, t.Context()} {
			k.holdUp(ctx, "ann", refusal)
			k.holdUp(ctx, "ann", refusal)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("held up for %s", took)
		}
	})
}
