package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
)

// holder is the buyer that a fault strikes. It buys at A.
const holder = "holder"

var errNoHolder = errors.New("the holder did not get as far as its write")

// hold sends the holder to A and waits until it is stopped at the point, for that
// long. The error, if any, says that it was not: there is nothing to strike.
func (t *Testbed) hold(ctx context.Context, at failpoint.Point, timeout time.Duration) error {
	if err := t.arm(ctx, at); err != nil {
		return err
	}
	t.buyers.send(ctx, t.A, holder)
	return holding(ctx, t, timeout)
}

// holding waits until the holder is stopped. A holder that has its answer will
// hardly be stopped any more; but an answer may come too soon, before the COMMIT,
// so it is waited for one lease longer.
func holding(ctx context.Context, t *Testbed, timeout time.Duration) error {
	e, _ := t.seen(ctx, timeout, holder, history.Holding, history.Answered)
	if e.Kind == history.Answered {
		e, _ = t.seen(ctx, min(timeout, t.Times.Lease), holder, history.Holding)
	}
	if e.Kind != history.Holding {
		return errNoHolder
	}
	return nil
}

// arm makes the holder stop once it gets to the point. It goes on when the fault
// is over, whatever came of it.
func (t *Testbed) arm(ctx context.Context, at failpoint.Point) error {
	t.afterwards(func(context.Context) error { return t.release() })
	if err := t.A.arm(holder, at); err != nil {
		return err
	}
	if _, ok := t.seen(ctx, t.Times.Wait, holder, history.Armed); !ok {
		return errNoHolder
	}
	return nil
}

// release lets the holder go on.
func (t *Testbed) release() error { return t.A.release(holder) }

// seen waits for an event of a buyer, for that long.
func (t *Testbed) seen(ctx context.Context, timeout time.Duration, purchaser string, kinds ...history.Kind) (history.Event, bool) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return t.Log.Wait(ctx, func(e history.Event) bool { return e.Purchaser == purchaser && slices.Contains(kinds, e.Kind) })
}
