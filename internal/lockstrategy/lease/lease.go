// Package lease is the right to sell a product for a while, and the naive section
// run under it.
//
//	Locked.Buy: waiting -> Locker.Lock -> acquired -> section -> Release
//
// Every lock strategy is a Locked around a Locker of its own. Invariant: the lease is
// released after the commit, never before it, also when the buyer has hung up; and
// the section's context ends when the lease is known to be lost. How buyers wait for
// a lock is internal/lockstrategy/waiting.
package lease

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/purchase"
)

// A Locker grants a lease on a product.
type Locker interface {
	// Lock waits for the lease until ctx ends, and then returns its cause.
	// *purchase.Unavailable when the lock's server did not do what it was asked,
	// even if ctx has ended meanwhile: a server that hangs is no busy lock.
	Lock(ctx context.Context, product string) (Lease, error)
}

// A Lease is the right to sell one product until it is released or runs out.
// It belongs to one buyer; its methods are not for several goroutines.
type Lease interface {
	// Context returns a child of ctx that ends, with cause
	// purchase.ErrLockLost, when the lease is known to be lost. Under a lock
	// that cannot know it, it ends with ctx.
	Context(ctx context.Context) (context.Context, context.CancelFunc)
	// Token is what the lock knows its holder by; "" where it has none.
	Token() string
	// Release gives the lease back. ErrNotHeld when it had run out: somebody
	// else may have been inside.
	Release(ctx context.Context) error
}

// ErrNotHeld means that the lease had another holder, or none, when it was released.
var ErrNotHeld = errors.New("the lease had run out before its release")

// A Fencer is a Lease with a fencing token: a number that no earlier lease on
// the product has reached.
type Fencer interface {
	Lease
	Fence() int64
}

// UntilLost is Lease.Context for a lease whose loss is signalled by closing lost.
func UntilLost(ctx context.Context, lost <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	select {
	case <-lost: // already: no statement may run before the goroutine below has seen it
		cancel(purchase.ErrLockLost)
		return ctx, func() {}
	default:
	}
	go func() {
		select {
		case <-lost:
			cancel(purchase.ErrLockLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
