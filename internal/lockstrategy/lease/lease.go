// Package lease defines a lease, the right to sell a product for a limited time, and runs the naive
// section under one.
//
//	Locked.Buy: waiting -> Locker.Lock -> acquired -> section -> Release
//
// Every lock strategy is a Locked with its own Locker. There are two invariants. The lease is
// released after the commit and never before it, also if the buyer has disconnected. The section's
// context ends when the lease is known to be lost. Package waiting has the ways to wait for a lock.
package lease

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/purchase"
)

// A Locker grants a lease on a product.
type Locker interface {
	// Lock waits for the lease until ctx ends, and then returns its cause, even if the lock's server
	// was silent. It returns a *purchase.Unavailable if the server refused what it was asked, or the
	// connection broke.
	Lock(ctx context.Context, product string) (Lease, error)
}

// A Lease is the right to sell one product until it is released or expires. It belongs to one
// buyer. Its methods are not safe for concurrent use.
type Lease interface {
	// Context returns a child of ctx that ends with cause purchase.ErrLockLost when the lease is
	// known to be lost. If the lock cannot know that, the child ends with ctx.
	Context(ctx context.Context) (context.Context, context.CancelFunc)
	// Token is the lock's name for its holder; "" if it has none.
	Token() string
	// Release gives the lease back. It returns ErrNotHeld if the lease had expired: another buyer
	// may have been inside.
	Release(ctx context.Context) error
}

// ErrNotHeld means that another holder or none had the lease when it was released.
var ErrNotHeld = errors.New("the lease had expired before its release")

// A Fencer is a Lease with a fencing token: a number greater than that of any earlier lease on the
// product.
type Fencer interface {
	Lease
	Fence() int64
}

// UntilLost implements Lease.Context for a lease that closes lost when it is lost.
func UntilLost(ctx context.Context, lost <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	select {
	case <-lost: // already lost: no statement may run before the goroutine below notices
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
