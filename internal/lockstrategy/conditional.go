package lockstrategy

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// Conditional takes units only if the stock has enough.
//
//   - Summary: UPDATE ... SET amount = amount - ? WHERE amount >= ?
//   - Guarantees: One statement checks and writes the stock, and the database runs it under the row's lock. The
//     stock is never negative, and no update is lost.
//   - Breaks when: never, with a single primary
//   - Cost: The row is locked from the update to the commit. The strategy never retries a sale.
//   - Source: MySQL 8.0 Reference Manual, 17.7.3, "Locks Set by Different SQL Statements in InnoDB" (an UPDATE
//     sees and locks the newest row); PostgreSQL 15 manual, 13.2.1, "Read Committed Isolation Level" (an UPDATE
//     waits and checks the WHERE again)
//   - Notes: PostgreSQL above READ COMMITTED refuses a stale write (40001). This strategy does not start
//     again then, so the catalogue promises nothing there. It does start again when a Galera cluster
//     refuses a COMMIT (1213).
type Conditional struct {
	deps    Deps
	retrier waiting.Retrier
}

// NewConditional returns the strategy. It needs only the database.
func NewConditional(d Deps) *Conditional {
	return &Conditional{d, waiting.NewRetrier(d, waiting.AnyRounds)}
}

// Buy implements purchase.Strategy.
func (s *Conditional) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	err = s.retrier.RetryRefused(ctx, o.Product, func(ctx context.Context, start time.Time) error {
		receipt, err = takeIfLeft(ctx, s.deps, o, "conditional", start)
		return err
	})
	return receipt, err
}

// takeIfLeft takes the units and inserts the record. The parameter `since` is the time when the buyer began to
// wait.
func takeIfLeft(ctx context.Context, d Deps, o purchase.Order, strategy string, since time.Time) (purchase.Receipt, error) {
	receipt := purchase.NewReceipt(o, strategy, 0, 0)
	err := purchase.InTx(ctx, d.DB, func(tx *gorm.DB) error {
		took, err := product.TakeIfLeft(tx, o.Product, o.Amount)
		if err != nil {
			return purchase.DatabaseError(ctx, "take the units", err)
		}
		receipt.Waited = d.Now().Sub(since)
		// The update has locked the row until the commit, so no other sale comes before this read.
		p, err := product.ByName(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read what is left", err)
		}
		if !took {
			return fmt.Errorf("%w: %d left", purchase.ErrSoldOut, p.Amount)
		}
		receipt.Left = p.Amount
		return purchase.Insert(ctx, tx, o.IdempotencyKey, d.Now(), &receipt)
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

func conditionalEntry() Entry {
	return Entry{
		Name: "conditional", Family: sqlOnly,
		New: func(d Deps) purchase.Strategy { return NewConditional(d) },
	}.holds().withPromiseAboveReadCommitted(promise.Crowds(), "")
}
