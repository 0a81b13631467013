// Package waiting is how the buyers of one process wait for their turn at a product:
// in a line of their own, so that a lock's server sees a few of them and not a crowd.
//
//	Polling   the lock's server says nothing: the front of the line polls
//	Notified  the server says when the lock is free: the front stands in its line
//	Retrier   there is no lock: rounds that lose start again, a few at a time
//	Groups    there is no turn: who waits is served with the others who do
//
// Invariant: the line keeps nobody apart. A holder does not stand in it, so a lock
// that breaks lets the front buyer in beside the holder, as it would without a line.
// Nothing is kept of a product that nobody waits for.
package waiting

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
)

// Lines is a first-come-first-served line of this process's goroutines for each
// product. A line lives while somebody stands in it, so made-up product names leave
// nothing behind. It is safe for concurrent use.
type Lines struct {
	width     int64 // how many may stand at the front at once
	mu        sync.Mutex
	byProduct keyed.Map[string, *line]
}

type line struct {
	front *semaphore.Weighted // of weight 1 a mutex that a goroutine can give up waiting for, in arrival order
	freed chan struct{}       // capacity 1: a lease was released by this process
}

// NewLines makes lines with room for width goroutines, at least 1, at the front.
func NewLines(width int64) *Lines { return &Lines{width: width} }

// A Place is one goroutine's at the front of a product's line.
type Place struct {
	lines   *Lines
	line    *line
	product string
}

// Front stands in the product's line until the front is reached. Leave must follow.
// It returns the cause of ctx when that ends first.
func (ls *Lines) Front(ctx context.Context, product string) (*Place, error) {
	p := &Place{lines: ls, line: ls.enter(product), product: product}
	if p.line.front.Acquire(ctx, 1) != nil {
		ls.leave(product)
		return nil, context.Cause(ctx)
	}
	return p, nil
}

// Leave lets the next one come to the front.
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

// hint wakes the front of the product's line: a lease of this process was released.
func (ls *Lines) hint(product string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l, waited := ls.byProduct.Get(product); waited {
		select {
		case l.freed <- struct{}{}:
		default: // a hint is waiting already
		}
	}
}
