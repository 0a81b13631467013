package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oversell/oversell/internal/purchase"
)

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
		if !errors.Is(context.Cause(ctx), purchase.ErrLockLost) {
			t.Errorf("after the loss: %v, want ErrLockLost", context.Cause(ctx))
		}
		late, end := UntilLost(t.Context(), lost)
		defer end()
		if !errors.Is(context.Cause(late), purchase.ErrLockLost) { // before any statement runs
			t.Errorf("lost before it began: %v, want ErrLockLost", context.Cause(late))
		}
		parent, cancel := context.WithCancelCause(t.Context())
		held, end := UntilLost(parent, make(chan struct{}))
		defer end()
		cancel(purchase.ErrBusy)
		if !errors.Is(context.Cause(held), purchase.ErrBusy) {
			t.Errorf("with its parent: %v, want ErrBusy", context.Cause(held))
		}
	})
}
