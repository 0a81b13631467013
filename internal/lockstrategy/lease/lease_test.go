package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

// fragile is a lease that is lost when its channel is closed. Its release then reports the loss.
type fragile chan struct{}

func (f fragile) Lock(context.Context, string) (Lease, error) { return f, nil }

func (f fragile) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return UntilLost(ctx, f)
}

func (f fragile) Token() string { return "" }

func (f fragile) Release(context.Context) error {
	select {
	case <-f:
		return ErrNotHeld
	default:
		return nil
	}
}

// unwatched is a fragile lease that reports its loss only at the release.
type unwatched struct{ fragile }

func (u unwatched) Lock(context.Context, string) (Lease, error) { return u, nil }

func (u unwatched) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// TestReportLoss: the loss of a lease is reported once, when it ends the holder's section or at the
// release. It is not reported if the section ends by itself or the buyer has gone.
func TestReportLoss(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(lost chan struct{}, hangUp context.CancelFunc)
		want []deps.EventKind
	}{
		"the lease is lost":     {func(lost chan struct{}, _ context.CancelFunc) { close(lost) }, []deps.EventKind{deps.Waiting, deps.Acquired, deps.Lost, deps.Released}},
		"the buyer hangs up":    {func(_ chan struct{}, hangUp context.CancelFunc) { hangUp() }, []deps.EventKind{deps.Waiting, deps.Acquired, deps.Released}},
		"the section is at end": {func(chan struct{}, context.CancelFunc) {}, []deps.EventKind{deps.Waiting, deps.Acquired, deps.Released}},
		"unwatched":             {func(lost chan struct{}, _ context.CancelFunc) { close(lost) }, []deps.EventKind{deps.Waiting, deps.Acquired, deps.Released, deps.Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []deps.EventKind
				lost := make(chan struct{})
				d := deps.Deps{
					Now: time.Now, Settings: deps.DefaultSettings(),
					Observe: func(_ context.Context, e deps.Event) { seen = append(seen, e.Kind) },
				}
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				var locker Locker = fragile(lost)
				if name == "unwatched" {
					locker = unwatched{fragile(lost)}
				}
				s := NewLocked(d, "fragile", locker)
				s.sell = func(context.Context, Lease, purchase.Order, time.Duration) (purchase.Receipt, error) {
					c.end(lost, hangUp)
					synctest.Wait()
					return purchase.Receipt{}, nil
				}
				_, _ = s.Buy(ctx, purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1})
				synctest.Wait()
				expect.DeepEqual(t, seen, c.want)
			})
		})
	}
}

// TestUntilLost: the context ends when the lease is lost, at once if it is already lost, and when
// its parent ends.
func TestUntilLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := make(chan struct{})
		ctx, end := UntilLost(t.Context(), lost)
		defer end()
		if ctx.Err() != nil {
			t.Errorf("before the loss: %v", ctx.Err())
		}
		close(lost)
		synctest.Wait()
		expect.ErrorIs(t, context.Cause(ctx), purchase.ErrLockLost, "after the loss")
		late, end := UntilLost(t.Context(), lost)
		defer end()
		if !errors.Is(context.Cause(late), purchase.ErrLockLost) { // the context has ended before a statement can run
			t.Errorf("lost before it began: %v, want ErrLockLost", context.Cause(late))
		}
		parent, cancel := context.WithCancelCause(t.Context())
		held, end := UntilLost(parent, make(chan struct{}))
		defer end()
		cancel(purchase.ErrBusy)
		expect.ErrorIs(t, context.Cause(held), purchase.ErrBusy, "with its parent")
	})
}
