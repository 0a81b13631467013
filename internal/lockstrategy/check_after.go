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

// CheckAfter decrements first and checks the stock afterwards.
//
//   - Summary: decrement first, roll back if negative
//   - Guarantees: One statement decrements the stock under the row's lock. The strategy rolls a negative stock
//     back before the commit, so no other transaction sees it.
//   - Breaks when: never, with a single primary
//   - How it breaks: Without the transaction, a negative stock remains. With a column that cannot be negative
//     (UNSIGNED), the statement fails instead.
//   - Cost: It costs the same as `conditional`. After the last sale, every buyer still locks and writes the
//     row, and rolls back.
//   - Source: MySQL 8.0 Reference Manual, 17.7.3, "Locks Set by Different SQL Statements in InnoDB"
//   - Notes: PostgreSQL above READ COMMITTED refuses a stale write (40001). This strategy does not start
//     again then, so the catalogue promises nothing there. It does start again when a Galera cluster
//     refuses a COMMIT (1213).
type CheckAfter struct {
	deps    Deps
	retrier waiting.Retrier
}

// NewCheckAfter returns the strategy. It needs only the database.
func NewCheckAfter(d Deps) *CheckAfter {
	return &CheckAfter{d, waiting.NewRetrier(d, waiting.AnyRounds)}
}

// Buy implements purchase.Strategy.
func (s *CheckAfter) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	err = s.retrier.RetryRefused(ctx, o.Product, func(ctx context.Context, start time.Time) error {
		receipt, err = s.round(ctx, o, start)
		return err
	})
	return receipt, err
}

// round tries to sell once. The parameter `start` is the time when the buyer began to wait.
func (s *CheckAfter) round(ctx context.Context, o purchase.Order, start time.Time) (purchase.Receipt, error) {
	receipt := purchase.NewReceipt(o, "check-after", 0, 0)
	err := purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if err := product.Take(tx, o.Product, o.Amount); err != nil {
			return purchase.DatabaseError(ctx, "take the units", err)
		}
		receipt.Waited = s.deps.Now().Sub(start)
		p, err := product.ByName(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read what is left", err)
		}
		if p.Amount < 0 {
			return fmt.Errorf("%w: %d left", purchase.ErrSoldOut, p.Amount+o.Amount)
		}
		receipt.Left = p.Amount
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

func checkAfterEntry() Entry {
	return Entry{
		Name: "check-after", Family: sqlOnly,
		New: func(d Deps) purchase.Strategy { return NewCheckAfter(d) },
	}.holds().withPromiseAboveReadCommitted(promise.Crowds(), "")
}
