package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// A buyer that lost a round pauses for up to firstPause, then up to twice as
// long each time, up to maxPause.
//
// maxRounds bounds the rounds that one process has under way at once on one
// product. Of n such rounds at most one wins, and the work of the
// others is lost: without a bound a crowd of 200 on a busy machine spent its whole
// wait on lost rounds. Two processes have two bounds: nothing here keeps buyers
// apart. Sales a second of 200 buyers, optimistic and serializable, median of
// three (shop rush --engine local --strategy optimistic,serializable, two cores):
//
//	rounds    first pause 1 ms    16 ms
//	     4       1240, 1219     598, 754
//	     8        471, 448      241, 211
//	    16        173, 134      154, 131
const (
	firstPause = time.Millisecond
	maxPause   = 256 * time.Millisecond
	maxRounds  = 4
	unbounded  = math.MaxInt64
)

// retrier runs rounds that may lose against another buyer.
type retrier struct {
	deps  Deps
	lines *lines // as wide as rounds may be under way
}

func newRetrier(d Deps, atOnce int64) retrier { return retrier{d, newLines(atOnce)} }

// retry runs round again while it returns ErrBusy, until Settings.Wait is
// over. start is the time of the call. The pauses between are drawn from
// [0, p), p doubling to maxPause: "full jitter" in Brooker, "Exponential
// Backoff And Jitter", AWS Architecture Blog, 2015.
func (r retrier) retry(ctx context.Context, product string, round func(ctx context.Context, start time.Time) error) error {
	ctx, start, cancel := r.deps.patience(ctx)
	defer cancel()
	line := r.lines.enter(product)
	defer r.lines.leave(line)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if err := line.front.Acquire(ctx, 1); err != nil {
			return fmt.Errorf("wait for a round: %w", context.Cause(ctx))
		}
		err := round(ctx, start)
		line.front.Release(1)
		if !errors.Is(err, purchase.ErrBusy) || ctx.Err() != nil {
			return err
		}
		r.deps.pause(ctx, rand.N(pause))
		if ctx.Err() != nil {
			return fmt.Errorf("retry: %w", context.Cause(ctx))
		}
	}
}
