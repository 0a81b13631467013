package rlock

import (
	"context"
	"time"
)

// A Clock is where a Client gets the time and its timers from. Its methods may
// be called by several goroutines at once.
type Clock interface {
	// Now is the present time. It must not run backwards.
	Now() time.Time
	// NewTimer sends on the channel once d has passed since the call, or since
	// the last Reset.
	NewTimer(d time.Duration) (Timer, <-chan time.Time)
	// AfterFunc calls f in a goroutine of its own once d has passed since the
	// call, or since the last Reset.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is what package time calls one, as far as it is used here.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// Timekeeper hands in the clock, for a test that decides by itself when time
// passes; the clock of package time by default. Leases, waits, and the pauses
// between two attempts are measured by it; RenewalTimer comes before it for the
// renewals. The time-outs of go-redis and of the caller's contexts are not.
func Timekeeper(c Clock) ClientOption {
	return func(client *Client) { client.clock = c }
}

// systemClock is the clock of package time.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) NewTimer(d time.Duration) (Timer, <-chan time.Time) {
	t := time.NewTimer(d)
	return t, t.C
}

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// remaining returns the time until t.
func remaining(c Clock, t time.Time) time.Duration { return t.Sub(c.Now()) }

// withTimeout is context.WithTimeoutCause by a clock.
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
