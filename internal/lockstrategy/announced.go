package lockstrategy

import (
	"context"
	"errors"

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

// errNotInLine: a buyer's place in the server's line was gone when its turn
// came, with its session or lease, or by a Reset.
var errNotInLine = errors.New("the place in line is gone")

// obtain calls queue, which stands in the server's line until ctx ends, again
// while it returns errNotInLine, and itself returns when ctx ends at the
// latest. The clients' calls may last longer than a context; a lease that
// comes too late is given back.
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
		for {
			lease, err := queue()
			if errors.Is(err, errNotInLine) && ctx.Err() == nil {
				continue
			}
			answers <- answer{lease, err}
			return
		}
	}()
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx) // and not what the end of ctx has led to
		}
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
