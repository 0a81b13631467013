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

// A buyer that lost a round pauses for up to firstPause, then up to twice as
// long each time, up to maxPause.
const (
	firstPause = time.Millisecond
	maxPause   = 256 * time.Millisecond
)

// How many rounds one process has under way at once on one product.
//
// Of n such rounds at most one wins, and the work of the others is lost: without a
// bound a crowd of 200 on a busy machine spent its whole wait on lost rounds. Two
// processes have two bounds: nothing here keeps buyers apart. Sales a second of 200
// buyers, optimistic and serializable, median of three (shop rush --engine local
// --strategy optimistic,serializable, two cores):
//
//	rounds    first pause 1 ms    16 ms
//	     4       1240, 1219     598, 754
//	     8        471, 448      241, 211
//	    16        173, 134      154, 131
const (
	FewRounds = 4
	AnyRounds = math.MaxInt64
)

// A Retrier runs rounds that may lose against another buyer. It is safe for
// concurrent use.
type Retrier struct {
	deps  deps.Deps
	lines *Lines // as wide as rounds may be under way
}

// NewRetrier has at most so many rounds under way at once on one product.
func NewRetrier(d deps.Deps, rounds int64) Retrier { return Retrier{d, NewLines(rounds)} }

// RetryRefused is Retry where the database may refuse any COMMIT in favour of another
// node's, see deps.Deps.Certifies: such a refusal is certain, nothing was written, and the
// units may still be there. Elsewhere round runs once.
func (r Retrier) RetryRefused(ctx context.Context, product string, round func(ctx context.Context, start time.Time) error) error {
	if r.deps.Certifies {
		return r.Retry(ctx, product, round)
	}
	ctx, start, cancel := r.deps.WithWait(ctx)
	defer cancel()
	return round(ctx, start)
}

// Retry runs round again while it returns purchase.ErrBusy, until Settings.Wait is
// over. start is the time of the call. The pauses between rounds are drawn from
// [0, p), p doubling to maxPause: "full jitter" in Brooker, "Exponential
// Backoff And Jitter", AWS Architecture Blog, 2015.
func (r Retrier) Retry(ctx context.Context, product string, round func(ctx context.Context, start time.Time) error) error {
	ctx, start, cancel := r.deps.WithWait(ctx)
	defer cancel()
	return r.RetryWithin(ctx, product, func(ctx context.Context) error { return round(ctx, start) })
}

// RetryWithin is Retry until ctx ends, however long that is.
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
