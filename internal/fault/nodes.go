package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
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
	if errors.Is(err, errNoHolder) {
		// It is still trying, and now it can have them all.
		err = s.held(ctx, s.Times.Wait)
	}
	if err != nil {
		return "", err
	}
	return s.heldOn(ctx)
}

// heldOn counts the nodes that know of the holder: more than a bare majority and
// fewer than all would be neither of the two locks that the faults are for.
func (s *Scene) heldOn(ctx context.Context) (how string, _ error) {
	var n int
	for _, node := range s.Servers.nodes {
		keys, err := node.keysOf(ctx, s.Product)
		if err != nil {
			return "", err
		}
		if len(keys) > 0 {
			n++
		}
	}
	switch all := len(s.Servers.nodes); n {
	case all - s.Servers.minority():
		return fmt.Sprintf("the lock is on %d of %d nodes, a bare majority", n, all), nil
	case all:
		return fmt.Sprintf("the lock is on all %d nodes, as it needs them", n), nil
	default:
		return "", missed("the lock is on %d of %d nodes", n, all)
	}
}

// settle lets a client that left silent nodes out ask them again.
func (s *Scene) settle(ctx context.Context) {
	select {
	case <-time.After(s.Times.Lease):
	case <-ctx.Done():
	}
}
