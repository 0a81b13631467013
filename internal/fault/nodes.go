package fault

import (
	"context"
	"errors"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/history"
)

// minority is how many of the nodes may fail.
func (s *Servers) minority() int { return (len(s.nodes) - 1) / 2 }

// holdBarely is hold for a lock on several nodes: while the holder acquires, a
// minority of the nodes is cut off from its shop, so that it gets a bare
// majority. A lock that needs all nodes does not get on like that; it holds all
// of them then, which says so.
func (s *Scene) holdBarely(ctx context.Context) (how string, err error) {
	spare := s.A.nodes[len(s.A.nodes)-s.Servers.minority():]
	for _, l := range spare {
		l.cut()
	}
	mend := func() error {
		var errs []error
		for _, l := range spare {
			errs = append(errs, l.mend())
		}
		return errors.Join(errs...)
	}
	err = s.hold(ctx, failpoint.Commit, s.Times.Wait/4)
	if err := mend(); err != nil {
		return "", err
	}
	if !errors.Is(err, errNoHolder) {
		return "on a bare majority", err
	}
	// It is still trying, and now it can have them all.
	if _, ok := s.seen(ctx, s.Times.Wait, holder, history.Holding); !ok {
		return "", errNoHolder
	}
	return "on all nodes, as it needs them", nil
}

// settle lets a client that left silent nodes out ask them again.
func (s *Scene) settle(ctx context.Context) {
	select {
	case <-time.After(s.Times.Lease):
	case <-ctx.Done():
	}
}
