package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
)

// eachTimeout is how long Each tries while no majority of the nodes has succeeded.
const eachTimeout = 5 * deps.ReleaseTimeout

// Each calls the function `ask` for all nodes at once, and again for a node that did not answer in time.
// After a majority has succeeded, it waits at most deps.ReleaseTimeout for the other nodes and returns nil.
// If Each removes a lock, the key may remain on a minority. There it blocks no buyer, and expires.
func Each(ctx context.Context, nodes int, ask func(ctx context.Context, node int) error) error {
	ctx, cancel := context.WithTimeout(ctx, eachTimeout)
	defer cancel()
	answers := make(chan error, nodes)
	for i := range nodes {
		go func() {
			err := ask(ctx, i)
			for deps.TimedOut(err) && ctx.Err() == nil {
				err = ask(ctx, i)
			}
			answers <- err
		}()
	}
	var errs []error
	succeeded := 0
	late := time.After(deps.ReleaseTimeout)
	for isLate := false; len(errs) < nodes && !(isLate && succeeded > nodes/2); {
		select {
		case err := <-answers:
			errs = append(errs, err)
			if err == nil {
				succeeded++
			}
		case <-late:
			isLate = true
		}
	}
	return Majority(nodes, errs)
}

// Down counts the failed nodes in the joined errors of the library redsync. The second result counts only
// the failed nodes that did not answer in time.
func Down(err error) (down, silent int) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			d, s := Down(e)
			down, silent = down+d, silent+s
		}
		return down, silent
	}
	var node *redsync.RedisError
	if !errors.As(err, &node) {
		return 0, 0
	}
	if errors.Is(err, errLeftOut) || deps.TimedOut(err) {
		return 1, 1
	}
	return 1, 0
}
