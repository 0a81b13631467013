package lockstrategy_test

import (
	"errors"
	"io"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
)

// TestFencedAfterRedisForgot: a Redis that has lost its counter grants tokens that the database has
// seen before. One buyer is refused for it; then sales go on.
func TestFencedAfterRedisForgot(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		entry, _ := lockstrategy.ByName("fenced")
		shop := entry.New(onengine.Deps(e))
		defer shop.(io.Closer).Close()
		buy := func() error {
			_, err := shop.Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1})
			return err
		}
		for range 3 {
			if err := buy(); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Redis.FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := buy(); !errors.Is(err, purchase.ErrLockLost) {
			t.Errorf("with an old token: %v, want ErrLockLost", err)
		}
		if err := buy(); err != nil {
			t.Errorf("the next buyer: %v", err)
		}
	})
}
