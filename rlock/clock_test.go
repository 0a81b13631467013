package rlock

import (
	"errors"
	"sync"
	"testing"
	"time"
)

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
		if err := receive(t, "the end of the wait", waiting); !errors.Is(err, ErrNotObtained) {
			t.Errorf("got %v, want ErrNotObtained", err)
		}
		mustUnlock(t, held)
	})
}
