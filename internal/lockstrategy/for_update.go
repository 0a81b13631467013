// for-update: read the stock with SELECT ... FOR UPDATE, write, insert, in one
// transaction.
//
// Guarantees:  one buyer of a product at a time on one primary, whatever the
//              number of processes; the lock ends with the transaction, so a
//              crash frees it.
// Breaks when: never, on a single primary. After a failover to a replica that
//              lacks the last commits nothing that SQL does helps.
// Cost:        buyers stand in line inside the database, each on a connection
//              of the pool, for four round trips of the one ahead.
// Source:      MySQL 8.0 Reference Manual, 17.7.2.4, "Locking Reads".
//
// SQLite has no row locks: there it is BEGIN IMMEDIATE, the write lock of the
// whole file.

package lockstrategy

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// ForUpdate locks the product's row.
type ForUpdate struct{ deps Deps }

// NewForUpdate needs the database.
func NewForUpdate(d Deps) *ForUpdate { return &ForUpdate{d} }

// Buy is purchase.Strategy.Buy.
func (s *ForUpdate) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, arrived, cancel := s.deps.patience(ctx)
	defer cancel()
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Strategy: "for-update"}
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		p, err := product.ForUpdate(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the stock for update", err)
		}
		receipt.Waited = arrived()
		if p.Amount < o.Amount {
			return fmt.Errorf("%w: %d left", purchase.ErrSoldOut, p.Amount)
		}
		receipt.Left = p.Amount - o.Amount
		if err := product.SetAmount(tx, p.ID, receipt.Left); err != nil {
			return purchase.DatabaseError(ctx, "write the stock", err)
		}
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}
