// Package waiting lets the buyers of one process wait for their turn at a product. They wait in a
// queue inside the process, so that a lock's server sees only a few of them.
//
//	Polling   the lock's server sends no notification: the buyer at the front polls
//	Notified  the server notifies when the lock is free: the first buyer waits in the server's queue
//	Retrier   there is no lock: failed attempts start again, a few at a time
//	Groups    there are no turns: waiting buyers are served together
//
// Invariant: the queue does not replace the lock. A buyer leaves the queue when it gets the lock. So if the
// lock is broken, the next buyer enters the critical section while the holder is inside. The package stores
// nothing about a product without waiting buyers.
package waiting

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
)

// Lines has one queue per product, in which goroutines of this process are served in order of arrival. A
// queue lives while a goroutine waits in it, so invented product names leave nothing behind. It is safe for
// concurrent use.
type Lines struct {
	width     int64 // how many goroutines may be at the front at once
	mu        sync.Mutex
	byProduct keyed.Map[string, *line]
}

type line struct {
	front *semaphore.Weighted // serves in order of arrival; with weight 1 it is a mutex whose waiters can give up
	freed chan struct{}       // has capacity 1; a value means that this process has released a lease
}

// NewLines returns empty queues. The parameter `width`, at least 1, is how many goroutines may be at
// the front of each queue.
func NewLines(width int64) *Lines { return &Lines{width: width} }

// A Place is one goroutine's place at the front of a product's queue.
type Place struct {
	lines   *Lines
	line    *line
	product string
}

// Front waits in the product's queue until the caller is at its front. Leave must follow. Front
// returns the cause of ctx if ctx ends first.
func (ls *Lines) Front(ctx context.Context, product string) (*Place, error) {
	p := &Place{lines: ls, line: ls.enter(product), product: product}
	if p.line.front.Acquire(ctx, 1) != nil {
		ls.leave(product)
		return nil, context.Cause(ctx)
	}
	return p, nil
}

// Leave lets the next goroutine come to the front.
func (p *Place) Leave() {
	p.line.front.Release(1)
	p.lines.leave(p.product)
}

func (ls *Lines) enter(product string) *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.byProduct.Use(product, func() *line {
		return &line{front: semaphore.NewWeighted(ls.width), freed: make(chan struct{}, 1)}
	})
}

func (ls *Lines) leave(product string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.byProduct.Release(product)
}

// hint wakes the goroutine at the front of the product's queue after this process has released a lease.
func (ls *Lines) hint(product string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l, waited := ls.byProduct.Get(product); waited {
		select {
		case l.freed <- struct{}{}:
		default: // a hint is already pending
		}
	}
}
