package quorum

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
)

// Each calls ask for all nodes at once, within deps.ReleaseTimeout. It returns nil if a majority
// succeeded. A key that remains on the other nodes expires, and has no majority until then.
func Each(ctx context.Context, nodes int, ask func(ctx context.Context, node int) error) error {
	ctx, cancel := context.WithTimeout(ctx, deps.ReleaseTimeout)
	defer cancel()
	answers := make(chan error, nodes)
	for i := range nodes {
		go func() { answers <- ask(ctx, i) }()
	}
	var errs []error
	for range nodes {
		errs = append(errs, <-answers)
	}
	return Majority(nodes, errs)
}

// Down counts the nodes that failed, from the joined errors of redsync. silent are those of them that
// only did not answer in time.
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
