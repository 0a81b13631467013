package product_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/require"
)

func divide(t *testing.T, db *gorm.DB, amounts ...int64) {
	t.Helper()
	err := db.Transaction(func(tx *gorm.DB) error {
		p, err := product.ForUpdate(tx, "pear")
		if err != nil {
			return err
		}
		before, err := stock.PartsForUpdate(tx, "pear")
		if err != nil {
			return err
		}
		if err := product.SetAmount(tx, p.ID, 0); err != nil {
			return err
		}
		return stock.WriteParts(tx, "pear", before, amounts)
	})
	require.NoError(t, err)
}

// TestParts: the stock is the sum of the product's row and its parts, and a restock leaves no unit
// in parts.
func TestParts(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		db := open(t).DB
		put(t, db, "pear", 10)
		put(t, db, "Pear", 7)
		left := func(when string, want int64) {
			t.Helper()
			whole, err := product.WithParts(db, "pear")
			if err != nil || whole.Amount != want || whole.Stocked != 10 || whole.Name != "pear" || whole.ID == 0 {
				t.Errorf("%s: %+v, %v; want %d left of 10", when, whole, err, want)
			}
			if units, err := product.Left(db, "pear"); err != nil || units != want {
				t.Errorf("%s: %d left, %v; want %d", when, units, err, want)
			}
			all, err := product.List(db)
			if err != nil || len(all) != 3 || all[0].Amount != 7 || all[2].Amount != want {
				t.Errorf("%s: %+v, %v; want 7 Pears and %d pears", when, all, err, want)
			}
		}
		take := func(part, units int64, want bool) {
			t.Helper()
			if took, err := stock.TakeFromPart(db, "pear", part, units); took != want || err != nil {
				t.Errorf("%d of part %d: %t, %v; want %t", units, part, took, err, want)
			}
		}
		left("undivided", 10)
		take(0, 1, false)
		divide(t, db, 4, 3, 3)
		left("divided", 10)
		expect.Equal(t, read(t, db, "pear").Amount, 0, "the row of a divided product")
		take(1, 3, true)
		take(1, 1, false)
		take(0, 5, false)
		take(0, 1, true)
		left("taken from", 6)
		divide(t, db, 3, 3) // into fewer parts
		left("divided anew", 6)
		take(2, 1, false)
		put(t, db, "pear", 10)
		left("restocked", 10)
		take(0, 1, false)
	})
}
