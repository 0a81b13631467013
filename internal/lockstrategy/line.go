package lockstrategy

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/oversell/oversell/internal/keyed"
)

// lines is a first-come-first-served line of this process's goroutines for
// each product. An entry lives while somebody stands in it, so made-up
// product names leave nothing behind.
type lines struct {
	width     int64 // how many may stand at the front at once
	mu        sync.Mutex
	byProduct keyed.Map[string, *line]
}

type line struct {
	front   *semaphore.Weighted // of weight 1 a mutex that one can give up waiting for, in arrival order
	freed   chan struct{}       // capacity 1: a lease was released by this process
	product string
}

func newLines(width int64) *lines { return &lines{width: width} }

// enter finds or makes the product's line; leave must follow.
func (ls *lines) enter(product string) *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.byProduct.Use(product, func() *line {
		return &line{front: semaphore.NewWeighted(ls.width), freed: make(chan struct{}, 1), product: product}
	})
}

func (ls *lines) leave(l *line) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.byProduct.Release(l.product)
}

// hint tells the one at the front that a lease of this process was released.
func (ls *lines) hint(product string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l, waited := ls.byProduct.Get(product); waited {
		select {
		case l.freed <- struct{}{}:
		default: // a hint is waiting already
		}
	}
}

// A poller obtains a lock that nobody announces the release of.
//
// The wait policy: of all the buyers that wait in this process only the one
// at the front polls, every 1 to 3 ms at the default Settings.Poll, and at
// once when a lease of this process is released. So the lock's server sees
// one poller a process, not one a buyer (200 pollers were seen to starve the
// holder), a hand-over takes one round trip and not a nap, and buyers of one
// process go first come, first served.
//
// The line does not keep anybody apart: the holder is not in it. Should the
// lock break, the one at the front gets in beside the holder, as it would
// without a line.
type poller struct {
	lines *lines
	poll  time.Duration
	pause func(ctx context.Context, d time.Duration) // Deps.Pause; may be nil
}

func newPoller(d Deps) poller {
	return poller{lines: newLines(1), poll: d.Settings.Poll, pause: d.Pause}
}

// obtain calls try until it reports true or an error, or ctx ends.
func (p poller) obtain(ctx context.Context, product string, try func() (bool, error)) error {
	l := p.lines.enter(product)
	defer p.lines.leave(l)
	if err := l.front.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer l.front.Release(1)
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
		case <-l.freed:
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// released wakes the one at the front.
func (p poller) released(product string) { p.lines.hint(product) }
