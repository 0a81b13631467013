package waiting

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
)

// Notified obtains a lock whose server notifies the next in line when it is free:
// ZooKeeper and etcd, each by a watch. It is safe for concurrent use.
//
// As under Polling, of all the buyers that wait in one process only those at
// the front, at most width of them, stand in the server's line. A thousand
// buyers would be a thousand nodes or leases there, each made and deleted on
// the server's disk, most of them for buyers that find the stock sold out.
type Notified struct{ lines *Lines }

// NewNotified lets so many buyers of this process stand in the server's line at once.
func NewNotified(width int64) Notified { return Notified{NewLines(width)} }

// ErrNotInLine means that a buyer's place in the server's line was gone when its turn
// came: with its session or lease, or by a Reset.
var ErrNotInLine = errors.New("the place in line is gone")

// Obtain calls queue, which stands in the server's line until ctx ends, again
// while it returns ErrNotInLine. It returns when ctx ends at the latest, with its
// cause. The clients' calls may last longer than a context; a lease that
// comes too late is given back.
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
			return nil, context.Cause(ctx) // and not the error that the end of ctx has led to
		}
		return a.lease, a.err
	case <-ctx.Done():
	}
	go func() {
		if a := <-answers; a.err == nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deps.ReleaseTimeout)
			defer cancel()
			_ = a.lease.Release(ctx) // it runs out by itself in the end
		}
	}()
	return nil, context.Cause(ctx)
}
