package lockstrategy

import (
	"context"
	"fmt"
	"sync"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// EarlyUnlock releases the lock before the commit instead of after it.
//
//   - Summary: a correct lock, released before the commit
//   - Guarantees: It guarantees nothing, despite the lock.
//   - Breaks when: two buyers buy at the same time
//   - How it breaks: A method takes the lock, writes the stock and releases the lock. Afterwards its
//     caller, which owns the transaction, inserts the record and commits. Step 1: A writes and releases the
//     lock. Step 2: B takes the lock and reads the stock from before A's commit. Step 3: A commits. Step 4:
//     B writes the number that it computed.
//   - Cost: It costs as much as its lock.
//   - Source: A lock inside Spring's @Transactional: spring-framework issue 23549; Redisson issue 2183
//   - Notes: The lock is the mutex of this process. That mutex is correct in a single process, so the early
//     release alone causes the break.
type EarlyUnlock struct {
	deps   Deps
	locker Locker
}

// NewEarlyUnlock returns the strategy. It needs only the database.
func NewEarlyUnlock(d Deps) *EarlyUnlock {
	return &EarlyUnlock{d, mutexLock{waiting.NewLines(1)}}
}

// Buy implements purchase.Strategy.
func (s *EarlyUnlock) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, _ error) {
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	event := deps.Event{Kind: deps.Waiting, Strategy: "early-unlock", Product: o.Product, Purchaser: o.Purchaser}
	s.deps.Report(ctx, event)
	held, err := s.locker.Lock(ctx, o.Product)
	if err != nil {
		return purchase.Receipt{}, fmt.Errorf("lock: %w", err)
	}
	event.Kind = deps.Acquired
	s.deps.Report(ctx, event)
	release := sync.OnceFunc(func() {
		event.Kind = deps.Released
		s.deps.Report(ctx, event)
		_ = held.Release(ctx) // a mutex of this process: it cannot fail
	})
	defer release()
	waited := s.deps.Now().Sub(start)
	p, err := product.ByName(s.deps.DB.WithContext(ctx), o.Product)
	if err != nil {
		return purchase.Receipt{}, purchase.DatabaseError(ctx, "read the stock", err)
	}
	if err := purchase.Check(p, o); err != nil {
		return purchase.Receipt{}, err
	}
	receipt = purchase.NewReceipt(o, "early-unlock", p.Amount-o.Amount, waited)
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if err := product.SetAmount(tx, p.ID, receipt.Left); err != nil {
			return purchase.DatabaseError(ctx, "write the stock", err)
		}
		release() // the bug: the stock is written, but not committed yet
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

func earlyUnlockEntry() Entry {
	return Entry{
		Name: "early-unlock", Family: noControl,
		New: func(d Deps) purchase.Strategy { return NewEarlyUnlock(d) },
		Traits: Traits{
			Witnesses: []WitnessSearch{{Flags: "--instances shared"}},
			WaitsFor:  WaitLock,
			CaughtBy:  map[string]string{"Rush": wantSoldTwice, "TwoProcesses": wantSoldTwiceOrTwoHolders, "MixedUnits": wantSoldTwiceOrTwoHolders},
		},
		// On SQLite, the strategy breaks only if a buyer reads in the 50 us or so between another buyer's
		// unlock and commit. One rush (burst of buyers) in twenty has no such buyer and does not break.
	}.holdsExcept(promise.BreaksFrom(promise.Rush)).withPromiseOn(dialect.SQLite, []promise.Condition{promise.Rush, promise.Units, promise.TwoProducts, promise.Duplicates}, "").
		withPromiseAboveReadCommitted([]promise.Condition{promise.Rush, promise.Units, promise.TwoProducts}, "") // the database refuses many of the late writes
}
