package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// A buyer that lost a round pauses for up to firstPause, then up to twice as
// long each time, up to maxPause. Most rounds of a crowd only stand in line to
// find that they have lost, so long pauses sell more. Sales a second of 200
// buyers, optimistic and serializable (shop rush --engine local, two cores):
// 170 and 60 from 1 ms, 205 and 90 from 16 ms; up to 512 ms it is less again.
// At most 64 ms starved a thousand optimistic buyers of 500 units.
const (
	firstPause = 16 * time.Millisecond
	maxPause   = 256 * time.Millisecond
)

// retry runs round again while it returns ErrBusy, until Settings.Wait is
// over. The pauses between are drawn from [0, p), p doubling to maxPause: "full jitter" in Brooker, "Exponential Backoff And Jitter", AWS
// Architecture Blog, 2015.
func (d Deps) retry(ctx context.Context, round func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.Settings.Wait, purchase.ErrBusy)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
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
