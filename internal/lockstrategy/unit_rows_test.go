package lockstrategy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
)

// TestUnitRowsPool: the pool is bounded, however large the stock. Orders larger than the pool are
// sold, and so is the whole stock.
func TestUnitRowsPool(t *testing.T) {
	for _, e := range []*engine.Engine{enginetest.Local(t), enginetest.Postgres(t)} {
		mustRestock(t, e, "apple", 2500)
		d := onengine.Deps(e)
		d.Settings.Wait = time.Minute // 1000 units are 1000 commands
		shop := lockstrategy.NewUnitRows(d)
		for i, c := range []struct{ units, left, rows int64 }{
			{1, 2499, 1000},
			{3, 2496, 997},
			{1000, 1496, 1000},
			{1000, 496, 0}, // all rows
			{497, -1, 0},
			{495, 1, 1},
			{1, 0, 0},
			{1, -1, 0},
		} {
			receipt, err := shop.Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: fmt.Sprint(i), Amount: c.units})
			if c.left < 0 && !errors.Is(err, purchase.ErrSoldOut) || c.left >= 0 && (err != nil || receipt.Left != c.left) {
				t.Errorf("%s: %d units: %+v, %v; want %d left", e.Server, c.units, receipt, err, c.left)
			}
			if got := parts(t, e, "apple"); got != c.rows {
				t.Errorf("%s: after %d units %d rows, want %d", e.Server, c.units, got, c.rows)
			}
		}
		mustHold(t, e, 6, 0)
	}
}
