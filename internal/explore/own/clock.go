package own

import (
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/rlock"
)

// A clock is the buyers' clock. It stands still during a schedule, so the load of the machine affects no comparison of
// two times. Only events move it. Its timers never fire: an event replaces each time-out and each expiry.
type clock struct {
	start atomic.Int64 // start of the schedule, in ns since 1970-01-01
	ahead atomic.Int64 // time that events have added, in ns
}

func (c *clock) begin() {
	c.start.Store(time.Now().Truncate(time.Millisecond).UnixNano())
	c.ahead.Store(0)
}

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// Now implements rlock.Clock.
func (c *clock) Now() time.Time { return time.Unix(0, c.start.Load()+c.ahead.Load()) }

// NewTimer implements rlock.Clock.
func (c *clock) NewTimer(time.Duration) (rlock.Timer, <-chan time.Time) { return never{}, nil }

// AfterFunc implements rlock.Clock.
func (c *clock) AfterFunc(time.Duration, func()) rlock.Timer { return never{} }

// A watch is the clock of one buyer's process, or of the process that all buyers share if the buyer is 0. It records
// each reading.
type watch struct {
	*clock
	x     *Runner
	buyer int
}

// Now implements rlock.Clock.
func (w watch) Now() time.Time {
	if r := w.x.current.Load(); r != nil {
		r.knows.memories[min(max(0, w.buyer-1), len(r.knows.memories)-1)].see(w.ahead.Load())
	}
	return w.clock.Now()
}

type never struct{}

func (never) Reset(time.Duration) bool { return true }
func (never) Stop() bool               { return true }
