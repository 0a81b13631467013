package waiting

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
)

// TestPollerOrder: buyers of one process are served in order of arrival, and only the first one
// polls.
func TestPollerOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoller(deps.Deps{Settings: deps.Settings{Poll: 2 * time.Millisecond}})
		free := false
		asking := -1
		var order []int
		for i := range 3 {
			go func() {
				err := p.obtain(t.Context(), "apple", func() (bool, error) {
					if !free {
						if asking >= 0 && asking != i {
							t.Errorf("%d asks while %d is at the front", i, asking)
						}
						asking = i
						return false, nil
					}
					free, asking = false, -1
					order = append(order, i)
					return true, nil
				})
				expect.NoError(t, err)
			}()
			synctest.Wait()
		}
		for range 3 {
			free = true
			p.released("apple")
			synctest.Wait()
		}
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Errorf("order %v, want 0 1 2", order)
		}
		expect.Equal(t, p.lines.byProduct.Len(), 0, "queues without a waiting buyer")
	})
}

// TestPollerHandsOn: a waiter notices a release in its own process at once, and a release elsewhere
// within 1.5 times Poll.
func TestPollerHandsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const poll = 2 * time.Millisecond
		for _, here := range []bool{true, false} {
			p := newPoller(deps.Deps{Settings: deps.Settings{Poll: poll}})
			var free atomic.Bool
			got := make(chan time.Time, 1)
			go func() {
				_ = p.obtain(t.Context(), "apple", func() (bool, error) { return free.Load(), nil })
				got <- time.Now()
			}()
			time.Sleep(10 * poll) // by the clock of the synctest bubble
			free.Store(true)
			freed := time.Now()
			limit := poll * 3 / 2
			if here {
				p.released("apple")
				limit = 0
			}
			if took := (<-got).Sub(freed); took > limit {
				t.Errorf("released here %v: handed on after %s, want at most %s", here, took, limit)
			}
		}
	})
}

// TestPollerGivesUp: a buyer gives up with the cause of its context, wherever it is in the queue.
// After a failed attempt, the next buyer is at the front.
func TestPollerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoller(deps.Deps{Settings: deps.Settings{Poll: 2 * time.Millisecond}})
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 2)
		for range 2 {
			go func() { ended <- p.obtain(ctx, "apple", func() (bool, error) { return false, nil }) }()
		}
		synctest.Wait()
		cancel(reason)
		for range 2 {
			expect.ErrorIs(t, <-ended, reason)
		}
		down := errors.New("down")
		expect.ErrorIs(t, p.obtain(t.Context(), "apple", func() (bool, error) { return false, down }), down)
		expect.NoError(t, p.obtain(t.Context(), "apple", func() (bool, error) { return true, nil }), "after all of them")
	})
}
