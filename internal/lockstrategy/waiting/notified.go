package waiting

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
)

// Notified obtains a lock whose server notifies the next waiter when it is free: ZooKeeper and
// etcd, each by a watch. It is safe for concurrent use.
//
// Only a few waiters per process queue at the server. A thousand buyers would need a thousand nodes or leases
// there, each created and deleted on the server's disk. Most of these would be for buyers that find the product
// sold out.
type Notified struct{ lines *Lines }

// NewNotified returns a Notified that lets at most `width` buyers of this process queue at the server at once.
func NewNotified(width int64) Notified { return Notified{NewLines(width)} }

// ErrNotInLine means that a buyer's place in the server's queue was gone when its turn came. The buyer's
// session or lease had ended, or Reset had removed the place.
var ErrNotInLine = errors.New("the place in line is gone")

// Obtain calls the function `queue`, which waits in the server's queue, and repeats the call while it
// returns ErrNotInLine. When ctx ends, Obtain returns the cause of ctx, even if the call is still running.
// If that call returns a lease later, a goroutine gives the lease back.
func (n Notified) Obtain(ctx context.Context, product string, queue func() (lease.Lease, error)) (lease.Lease, error) {
	place, err := n.lines.Front(ctx, product)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	type answer struct {
		lease lease.Lease
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		for {
			lease, err := queue()
			if errors.Is(err, ErrNotInLine) && ctx.Err() == nil {
				continue
			}
			answers <- answer{lease, err}
			return
		}
	}()
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx) // the error of `queue` is only a consequence of the end of ctx
		}
		return a.lease, a.err
	case <-ctx.Done():
	}
	go func() {
		if a := <-answers; a.err == nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deps.ReleaseTimeout)
			defer cancel()
			_ = a.lease.Release(ctx) // a lease that is not released expires
		}
	}()
	return nil, context.Cause(ctx)
}
