package waiting

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
)

// A Poller obtains a lock whose release no server reports. It is safe for concurrent
// use.
//
// The wait policy: of all the buyers that wait in this process only the one
// at the front polls, every 1 to 3 ms at the default Settings.Poll, and at
// once when a lease of this process is released. So the lock's server sees
// one poller a process, not one a buyer (200 pollers were seen to starve the
// holder), a hand-over takes one round trip and not a nap, and buyers of one
// process go first come, first served.
type Poller struct {
	lines *Lines
	poll  time.Duration
	pause func(ctx context.Context, d time.Duration) // Deps.Pause; may be nil
}

// NewPoller makes a poller that naps as d says.
func NewPoller(d deps.Deps) Poller {
	return Poller{lines: NewLines(1), poll: d.Settings.Poll, pause: d.Pause}
}

// Obtain calls try until it reports true or an error, or ctx ends; then it returns
// the cause of ctx.
func (p Poller) Obtain(ctx context.Context, product string, try func() (bool, error)) error {
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

// Released wakes the front of the product's line. Whoever gives a lease back calls it.
func (p Poller) Released(product string) { p.lines.hint(product) }
