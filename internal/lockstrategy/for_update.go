package lockstrategy

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// ForUpdate locks the product's row.
//
//   - Summary: SELECT ... FOR UPDATE, update, insert, one transaction
//   - Guarantees: Mutual exclusion per product on one primary, for any number of processes. The lock ends
//     with the transaction, so a crash releases it.
//   - Breaks when: never, with a single primary
//   - Cost: Buyers queue inside the database, each on a connection of the pool. Each buyer waits for three
//     round trips of the buyer ahead.
//   - Source: MySQL 8.0 Reference Manual, 17.7.2.4, "Locking Reads"; PostgreSQL 15 manual, 13.3.2, "Row-Level
//     Locks"
//   - Notes: SQLite has no row locks. There the strategy uses BEGIN IMMEDIATE, the write lock of the whole
//     file. PostgreSQL above READ COMMITTED refuses a stale write (40001). This strategy does not start
//     again then, so the catalogue promises nothing there. It does start again when a Galera cluster
//     refuses a COMMIT (1213).
type ForUpdate struct {
	deps    Deps
	retrier waiting.Retrier
	section purchase.Section
}

// NewForUpdate returns the strategy. It needs only the database.
func NewForUpdate(d Deps) *ForUpdate {
	return &ForUpdate{d, waiting.NewRetrier(d, waiting.AnyRounds), d.Section("for-update")}
}

// Buy implements purchase.Strategy.
func (s *ForUpdate) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	err = s.retrier.RetryRefused(ctx, o.Product, func(ctx context.Context, start time.Time) error {
		return purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
			p, err := product.ForUpdate(tx, o.Product)
			if err != nil {
				return purchase.DatabaseError(ctx, "read the stock for update", err)
			}
			waited := s.deps.Now().Sub(start)
			if err := purchase.Check(p, o); err != nil {
				return err
			}
			receipt, err = s.section.Write(ctx, tx, p, o, waited)
			return err
		})
	})
	return receipt, err
}

func forUpdateEntry() Entry {
	return Entry{
		Name: "for-update", Family: sqlOnly,
		New: func(d Deps) purchase.Strategy { return NewForUpdate(d) },
	}.holds().withPromiseAboveReadCommitted(promise.Crowds(), "")
}
