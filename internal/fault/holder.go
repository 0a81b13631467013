package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
)

// holder is the purchaser that a fault stops when it acts on two shops of its own. It buys at shop A.
const holder = "holder"

var errNoHolder = errors.New("the holder did not reach its write")

func (t *Testbed) hold(ctx context.Context, at failpoint.Point) (inside int, err error) {
	return 1, holdFor(ctx, t, at, t.Times.Wait)
}

// holdFor sends the holder to shop A and waits, at most for the timeout, until the holder is stopped at the
// failpoint. An error means that it was not stopped, so the fault cannot take effect.
func holdFor(ctx context.Context, t *Testbed, at failpoint.Point, timeout time.Duration) error {
	if err := arm(ctx, t, at); err != nil {
		return err
	}
	t.buyers.send(ctx, t.A, holder)
	return holding(ctx, t, timeout)
}

// holding waits until the holder is stopped. Once the holder has its answer, it usually cannot stop any more.
// But a buggy shop may answer before the COMMIT, so holding waits one more lease after an answer.
func holding(ctx context.Context, t *Testbed, timeout time.Duration) error {
	e, _ := seen(ctx, t, timeout, holder, history.Holding, history.Answered)
	if e.Kind == history.Answered {
		e, _ = seen(ctx, t, min(timeout, t.Times.Lease), holder, history.Holding)
	}
	if e.Kind != history.Holding {
		return errNoHolder
	}
	return nil
}

// arm makes the holder stop when it reaches the failpoint. The holder continues when the fault is over, even
// after an error.
func arm(ctx context.Context, t *Testbed, at failpoint.Point) error {
	t.afterwards(func(context.Context) error { return t.release() })
	if err := t.A.arm(holder, at); err != nil {
		return err
	}
	if _, ok := seen(ctx, t, t.Times.Wait, holder, history.Armed); !ok {
		return errNoHolder
	}
	return nil
}

// stop sends a buyer to the shop. The buyer stops at the failpoint until it is released or the injection ends.
func stop(ctx context.Context, t *Testbed, shop **CellShop, purchaser string, at failpoint.Point) error {
	t.afterwards(func(context.Context) error { return (*shop).release(purchaser) })
	if err := (*shop).arm(purchaser, at); err != nil {
		return err
	}
	if _, ok := seen(ctx, t, t.Times.Wait, purchaser, history.Armed); !ok {
		return errNoHolder
	}
	t.buyers.send(ctx, *shop, purchaser)
	return nil
}

// goOn lets a buyer continue that was stopped at its COMMIT. If its lease may have ended, another buyer may hold
// the lock by right, and the COMMIT might oversell. Then goOn kills the shop instead, and the fault missed.
func (t *Testbed) goOn(ctx context.Context, shop **CellShop, purchaser string) error {
	if !t.mayHaveLapsed(purchaser) {
		return (*shop).release(purchaser)
	}
	if err := errors.Join((*shop).Kill(), t.startAgain(ctx, shop)); err != nil {
		return err
	}
	return missed("%s was stopped for so long that its lease may have ended", purchaser)
}

// mayHaveLapsed reports whether a buyer took a lock more than three quarters of a lease ago.
func (t *Testbed) mayHaveLapsed(purchaser string) bool {
	return slices.ContainsFunc(t.Log.Events(), func(e history.Event) bool {
		return e.Purchaser == purchaser && e.Kind == history.Acquired && time.Since(e.At) > t.Times.Lease*3/4
	})
}

func (t *Testbed) release() error { return t.A.release(holder) }

// staysHeld waits until the given time and reports whether the holder stayed stopped.
func (t *Testbed) staysHeld(ctx context.Context, until time.Time) bool {
	seen(ctx, t, time.Until(until), holder, history.Answered, history.Resumed)
	_, ended := seen(ctx, t, time.Millisecond, holder, history.Resumed)
	return !ended
}

func seen(ctx context.Context, t *Testbed, timeout time.Duration, purchaser string, kinds ...history.Kind) (history.Event, bool) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return t.Log.Wait(ctx, func(e history.Event) bool { return e.Purchaser == purchaser && slices.Contains(kinds, e.Kind) })
}
