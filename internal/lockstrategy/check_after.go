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
//   - Summary: decrement first, roll back when below zero
//   - Guarantees: the decrement is one statement under the row's lock, and nobody sees a stock below zero: it is
//     rolled back before the commit
//   - Breaks when: never (single primary)
//   - How it breaks: Without the transaction it leaves a stock below zero. With a column that cannot go below zero
//     (UNSIGNED) the statement fails instead.
//   - Cost: as conditional; and every buyer after the last unit writes, locks the row and rolls back
//   - Source: MySQL 8.0 Reference Manual, 17.7.3, "Locks Set by Different SQL Statements in InnoDB"
//   - Notes: PostgreSQL above READ COMMITTED refuses a write of a row that has changed since the snapshot (40001),
//     and this code does not start again: buyers are told busy while units are left, more of them the more meet.
//     How many do is chance, so nothing is promised there. A Galera cluster refuses a COMMIT that rests on a row
//     which another node has written since (1213); there this code starts again.
type CheckAfter struct {
	deps    Deps
	retrier waiting.Retrier
}

// NewCheckAfter needs the database.
func NewCheckAfter(d Deps) *CheckAfter {
	return &CheckAfter{d, waiting.NewRetrier(d, waiting.AnyRounds)}
}

// Buy is purchase.Strategy.Buy.
func (s *CheckAfter) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	err = s.retrier.RetryRefused(ctx, o.Product, func(ctx context.Context, start time.Time) error {
		receipt, err = s.round(ctx, o, start)
		return err
	})
	return receipt, err
}

// round decrements once. start is when the buyer began to wait.
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
	}.holds().aboveReadCommitted(promise.Crowds(), "")
}
