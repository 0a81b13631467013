package waiting

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/purchase"
)

// A Trier is a lock that a buyer can try to take, but cannot wait for.
type Trier interface {
	// Try tries once. It returns nil without an error if another holder has the lock.
	Try(ctx context.Context, product string) (lease.Lease, error)
	purchase.Resetter
}

// Polling makes a lease.Locker from a Trier. One buyer of this process polls at a time.
type Polling struct {
	Trier
	poller poller
}

// NewPolling returns a Polling that tries to take the lock t, with the pauses that the settings of d allow.
func NewPolling(d deps.Deps, t Trier) Polling { return Polling{t, newPoller(d)} }

// Lock implements lease.Locker.
func (p Polling) Lock(ctx context.Context, product string) (held lease.Lease, err error) {
	err = p.poller.obtain(ctx, product, func() (bool, error) {
		held, err = p.Try(ctx, product)
		return err == nil && held != nil, err
	})
	if err != nil {
		return nil, err
	}
	return polled{held, func() { p.poller.released(product) }}, nil
}

// polled wakes the goroutine at the front of the queue when its lease is released.
type polled struct {
	lease.Lease
	released func()
}

func (p polled) Release(ctx context.Context) error {
	defer p.released()
	return p.Lease.Release(ctx)
}

// poller obtains a lock whose server does not report when it is free. It is safe for concurrent use.
//
// Of all buyers that wait in this process, only the one at the front polls. It does so every 1 to 3 ms at the
// default Settings.Poll, and at once when this process releases a lease. The lock's server sees one poller per
// process and not one per buyer. In a test, 200 pollers kept the server so busy that the holder's commands
// waited. Between two buyers of one process, the lock passes in one round trip, without a pause. Buyers of one
// process are served in order of arrival.
type poller struct {
	lines *Lines
	poll  time.Duration
	pause func(ctx context.Context, d time.Duration) // Deps.Pause; may be nil
}

func newPoller(d deps.Deps) poller {
	return poller{lines: NewLines(1), poll: d.Settings.Poll, pause: d.Pause}
}

// obtain calls the function `try` until that returns true or an error. When ctx ends, it returns the cause
// of ctx.
func (p poller) obtain(ctx context.Context, product string, try func() (bool, error)) error {
	place, err := p.lines.Front(ctx, product)
	if err != nil {
		return err
	}
	defer place.Leave()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		ok, err := try()
		switch {
		case ok:
			return nil
		case err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		nap := p.poll/2 + rand.N(p.poll+1)
		if p.pause != nil {
			p.pause(ctx, nap)
			continue
		}
		timer.Reset(nap)
		select {
		case <-place.line.freed:
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// released wakes the goroutine at the front of the product's queue after a buyer has given its lease back.
func (p poller) released(product string) { p.lines.hint(product) }
