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

// Down counts the nodes that did not answer, from the joined errors of redsync.
func Down(err error) int {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		n := 0
		for _, e := range joined.Unwrap() {
			n += Down(e)
		}
		return n
	}
	var node *redsync.RedisError
	if errors.As(err, &node) {
		return 1
	}
	return 0
}
