package rlock

import (
	"context"
	"time"
)

// A Clock gives a Client the time and its timers. Its methods must be safe for concurrent use.
type Clock interface {
	// Now returns the present time. It must not run backwards.
	Now() time.Time
	// NewTimer returns a timer that sends on its channel once d has passed since the call, or
	// since the last Reset.
	NewTimer(d time.Duration) (Timer, <-chan time.Time)
	// AfterFunc calls f in a new goroutine once d has passed since the call, or since the last Reset.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer has the methods of time.Timer that this package uses.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// Timekeeper sets the clock, for a test that decides when time passes; the default is the clock of package
// time. The clock measures leases, waits, the pauses between two attempts and, unless RenewalTimer is set,
// the time until a renewal. The timeouts of go-redis and of the caller's contexts do not use it.
func Timekeeper(c Clock) ClientOption {
	return func(client *Client) { client.clock = c }
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) NewTimer(d time.Duration) (Timer, <-chan time.Time) {
	t := time.NewTimer(d)
	return t, t.C
}

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

func remaining(c Clock, t time.Time) time.Duration { return t.Sub(c.Now()) }

// withTimeout does the same as context.WithTimeoutCause, but uses the clock c.
func withTimeout(ctx context.Context, c Clock, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if _, system := c.(systemClock); system {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := c.AfterFunc(d, func() { cancel(cause) })
	return ctx, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}
