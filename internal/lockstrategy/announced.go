package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/purchase"
)

// An announcer obtains a lock whose server tells the next in line that it is
// free: ZooKeeper and etcd, each by a watch.
//
// As under a poller, of all the buyers that wait in one process only those at
// the front, at most width of them, stand in the server's line. A thousand
// buyers would be a thousand nodes or leases there, each made and deleted on
// the server's disk, most of them for buyers that find the stock sold out. The
// line keeps nobody apart: the holder is not in it.
type announcer struct{ lines *lines }

func newAnnouncer(width int64) announcer { return announcer{newLines(width)} }

// obtain calls queue, which stands in the server's line until ctx ends, and
// returns when ctx ends at the latest. The clients' calls may last longer than
// a context; a lease that comes too late is given back.
func (a announcer) obtain(ctx context.Context, product string, queue func() (Lease, error)) (Lease, error) {
	l := a.lines.enter(product)
	defer a.lines.leave(l)
	if err := l.front.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer l.front.Release(1)
	type answer struct {
		lease Lease
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		lease, err := queue()
		answers <- answer{lease, err}
	}()
	select {
	case a := <-answers:
		return a.lease, a.err
	case <-ctx.Done():
	}
	go func() {
		if a := <-answers; a.err == nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			defer cancel()
			_ = a.lease.Release(ctx) // it runs out by itself in the end
		}
	}()
	return nil, context.Cause(ctx)
}

// untilLost is Lease.Context for a lease whose loss is signalled.
func untilLost(ctx context.Context, lost <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	select {
	case <-lost: // already: no statement may run before the goroutine below has looked
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
