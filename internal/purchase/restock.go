package purchase

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
)

// Restock puts units of a product on sale. It sets the stock, deletes the product's records, and calls Reset
// of each element of `kept`, such as a lock in Redis. The caller must keep the buyers of its process out of
// Buy until Restock returns. Restock calls Reset first: if a lock's server is down, stock and records stay
// unchanged, and the error wraps that of the Resetter.
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
