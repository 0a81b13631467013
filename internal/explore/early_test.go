package explore_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
)

// TestEarlySoldOut: a strategy tells a buyer sold out because its own row is empty, while another
// row has a unit. The search counts this if the buyer that would have got the unit crashes. The
// corrected strategy never does it.
func TestEarlySoldOut(t *testing.T) {
	for _, mistake := range []bool{true, false} {
		config := exploretest.Config(enginetest.Embedded(t), lockstrategy.Entry{
			Name: "planted",
			New:  func(d lockstrategy.Deps) purchase.Strategy { return ownRow{d, mistake} },
			Traits: lockstrategy.Traits{
				Left: product.Left, KeyDecides: true,
			},
		})
		config.Parts, config.Events = 2, []explore.Event{explore.Crash}
		result := search(t, config)
		if !result.Complete || result.Violations > 0 || (result.Early > 0) != mistake {
			t.Errorf("mistake %v: %d of %d schedules are early, complete %v, %d violations", mistake, result.Early, result.Explored, result.Complete, result.Violations)
		}
		if notes := explore.NewReport(config, result).Notes(); (len(notes) > 0) != mistake {
			t.Errorf("mistake %v: noted %q", mistake, notes)
		}
	}
}

// ownRow takes a unit from a row of its own. Unless it has the mistake, it also checks the other
// row.
type ownRow struct {
	deps    lockstrategy.Deps
	mistake bool
}

func (s ownRow) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Strategy: "planted"}
	rows := []int64{0, 1}
	switch {
	case o.Purchaser == "buyer-2" && s.mistake:
		rows = []int64{1}
	case o.Purchaser == "buyer-2":
		rows = []int64{1, 0}
	}
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		for _, row := range rows {
			took, err := stock.TakeFromPart(tx, o.Product, row, o.Amount)
			switch {
			case err != nil:
				return purchase.DatabaseError(ctx, "take the units", err)
			case took:
				return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
			}
		}
		return purchase.ErrSoldOut
	})
	return receipt, err
}
