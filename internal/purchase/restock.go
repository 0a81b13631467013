package purchase

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
)

// Restock puts units of a product on sale: its stock and its records begin anew, and each of
// kept forgets what it has of the product outside the database. The caller has no buyer of its
// process inside Buy meanwhile. The locks go first: if their server is down, stock and records
// stay as they were.
func Restock(ctx context.Context, db *gorm.DB, kept []Resetter, name string, units int64) error {
	for _, k := range kept {
		if err := k.Reset(ctx, name); err != nil {
			return fmt.Errorf("nothing was restocked: %w", err)
		}
	}
	err := InLockingTx(ctx, db, func(tx *gorm.DB) error {
		if err := product.Put(tx, name, units); err != nil {
			return DatabaseError(ctx, "restock", err)
		}
		return DatabaseError(ctx, "clear the records", Clear(tx, name))
	})
	for _, k := range kept {
		if keeper, ok := k.(StockKeeper); ok && err == nil {
			err = keeper.Reset(ctx, name)
		}
	}
	return err
}
