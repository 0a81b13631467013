package waiting

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

// A buyer whose attempt failed pauses for up to firstPause. After each further failure it pauses up
// to twice as long, up to maxPause.
const (
	firstPause = time.Millisecond
	maxPause   = 256 * time.Millisecond
)

// The number of rounds, attempts to sell, that one process runs at once on one product.
//
// Of n simultaneous rounds at most one succeeds, and the work of the others is lost. Without a limit, 200
// buyers on a busy machine spent their whole wait on failed rounds. Each process has its own limit, so the
// limit is not a lock. Sales per second of 200 buyers with `optimistic` and `serializable`, median of three
// (shop rush --engine local --strategy optimistic,serializable, two cores):
//
//	rounds    first pause 1 ms    16 ms
//	     4       1240, 1219     598, 754
//	     8        471, 448      241, 211
//	    16        173, 134      154, 131
const (
	FewRounds = 4
	AnyRounds = math.MaxInt64
)

// A Retrier runs rounds, attempts to sell that fail if another buyer writes first. It is safe for concurrent
// use.
type Retrier struct {
	deps  deps.Deps
	lines *Lines // its width is the number of concurrent rounds
}

// NewRetrier returns a Retrier that runs at most the given number of rounds of one product at once.
func NewRetrier(d deps.Deps, rounds int64) Retrier { return Retrier{d, NewLines(rounds)} }

// RetryRefused does the same as Retry on a cluster that may refuse a COMMIT, such as Galera. A refused COMMIT
// has written nothing, so units may be left. On any other database it calls the function `round` once.
func (r Retrier) RetryRefused(ctx context.Context, product string, round func(ctx context.Context, start time.Time) error) error {
	if r.deps.Certifies {
		return r.Retry(ctx, product, round)
	}
	ctx, start, cancel := r.deps.WithWait(ctx)
	defer cancel()
	return round(ctx, start)
}

// Retry calls the function `round` again while that returns purchase.ErrBusy, until Settings.Wait is over.
// The argument `start` is the time when the buy began. The pauses between rounds are drawn from [0, p), and
// p doubles up to maxPause ("full jitter" in Brooker, "Exponential Backoff And Jitter", AWS Architecture
// Blog, 2015).
func (r Retrier) Retry(ctx context.Context, product string, round func(ctx context.Context, start time.Time) error) error {
	ctx, start, cancel := r.deps.WithWait(ctx)
	defer cancel()
	return r.RetryWithin(ctx, product, func(ctx context.Context) error { return round(ctx, start) })
}

// RetryWithin does the same as Retry, but without the limit of Settings.Wait: only the end of ctx ends it.
func (r Retrier) RetryWithin(ctx context.Context, product string, round func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		place, err := r.lines.Front(ctx, product)
		if err != nil {
			return fmt.Errorf("wait for a round: %w", err)
		}
		err = round(ctx)
		place.Leave()
		if !errors.Is(err, purchase.ErrBusy) || ctx.Err() != nil {
			return err
		}
		r.deps.Sleep(ctx, rand.N(pause))
		if ctx.Err() != nil {
			return fmt.Errorf("retry: %w", context.Cause(ctx))
		}
	}
}
