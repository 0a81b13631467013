// early-unlock: a good lock around the naive section, released before the
// commit. The most repeated real bug of this trade: a method takes the lock,
// writes the stock and frees the lock; the caller, whose transaction it is, then
// inserts the record and commits.
//
// Guarantees:  nothing, in spite of the lock.
// Breaks when: two buyers at once. A writes, frees the lock; B takes it, reads
//              the stock from before A's commit; A commits; B writes the number
//              that it computed.
// Cost:        that of the lock.
// Source:      the lock inside Spring's @Transactional: spring-framework issue
//              23549; Redisson issue 2183.
//
// The lock is the mutex of this process, which holds by itself in a single one:
// what breaks here is its place.

package lockstrategy

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// EarlyUnlock frees the lock one statement too early.
type EarlyUnlock struct {
	deps   Deps
	locker Locker
}

// NewEarlyUnlock needs the database.
func NewEarlyUnlock(d Deps) *EarlyUnlock {
	return &EarlyUnlock{d, mutexLocker{newLines(1)}}
}

// Buy is purchase.Strategy.Buy.
func (s *EarlyUnlock) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, _ error) {
	start := s.deps.Now()
	lease, err := lockWithin(ctx, s.deps.Settings.Wait, s.locker, o.Product)
	if err != nil {
		return purchase.Receipt{}, fmt.Errorf("lock: %w", err)
	}
	waited := s.deps.Now().Sub(start)
	released := false
	defer func() {
		if !released {
			_ = lease.Release(ctx) // a mutex of this process: it cannot fail
		}
	}()
	p, err := product.ByName(s.deps.DB.WithContext(ctx), o.Product)
	if err != nil {
		return purchase.Receipt{}, purchase.DatabaseError(ctx, "read the stock", err)
	}
	if err := purchase.Check(p, o); err != nil {
		return purchase.Receipt{}, err
	}
	receipt = purchase.Receipt{
		Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount,
		Left: p.Amount - o.Amount, Strategy: "early-unlock", Waited: waited,
	}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if err := product.SetAmount(tx, p.ID, receipt.Left); err != nil {
			return purchase.DatabaseError(ctx, "write the stock", err)
		}
		released = true
		_ = lease.Release(ctx) // the bug: the stock is written, and nobody sees it before the commit
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}
