package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// maxPause is the most that a buyer pauses between two rounds. At 64 ms a
// thousand optimistic buyers of 500 units starve each other: most rounds stand
// in line for the row only to find it changed. At 256 ms all 500 are sold in 2
// to 3 s (shop rush --engine local --strategy optimistic --buyers 1000 --stock 500).
const maxPause = 256 * time.Millisecond

// retry runs round again while it returns ErrBusy, until Settings.Wait is
// over. The pauses between are drawn from [0, p), p from 1 ms doubling to
// maxPause: "full jitter" in Brooker, "Exponential Backoff And Jitter", AWS
// Architecture Blog, 2015.
func (d Deps) retry(ctx context.Context, round func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		err := round(ctx)
		if !errors.Is(err, purchase.ErrBusy) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(rand.N(pause)):
		case <-ctx.Done():
			return fmt.Errorf("retry: %w", context.Cause(ctx))
		}
	}
}
