package lockstrategy

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

var errStale = fmt.Errorf("%w: the product has a newer version", purchase.ErrBusy)

// Optimistic writes only if the row's version is still the one that it read, and retries until
// Settings.Wait is over.
//
//   - Summary: UPDATE ... WHERE version = ?, bounded retry with jitter
//   - Guarantees: A write takes effect only if no other buyer has changed the stock since it was read.
//   - Breaks when: never, but under contention many buyers are answered "busy"
//   - How it breaks: Code that ignores the number of rows written loses this guarantee.
//   - Cost: A buyer starts again each time another buyer writes first. The last of n simultaneous buyers
//     needs about n attempts, so a process admits only a few buyers at a time.
//   - Source: Kung and Robinson, "On Optimistic Methods for Concurrency Control", ACM TODS 6(2), 1981; Brooker,
//     "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 (the pause between attempts: "full jitter")
type Optimistic struct {
	deps    Deps
	retrier waiting.Retrier
}

// NewOptimistic returns the strategy. It needs only the database.
func NewOptimistic(d Deps) *Optimistic {
	return &Optimistic{d, waiting.NewRetrier(d, waiting.FewRounds)}
}

// Buy implements purchase.Strategy.
func (s *Optimistic) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	err = s.retrier.Retry(ctx, o.Product, func(ctx context.Context, start time.Time) error {
		receipt, err = s.round(ctx, o, s.deps.Now().Sub(start))
		return err
	})
	return receipt, err
}

// round reads once and tries to write once. It returns errStale if another buyer wrote first.
func (s *Optimistic) round(ctx context.Context, o purchase.Order, waited time.Duration) (purchase.Receipt, error) {
	p, err := product.ByName(s.deps.DB.WithContext(ctx), o.Product)
	if err != nil {
		return purchase.Receipt{}, purchase.DatabaseError(ctx, "read the stock", err)
	}
	if err := purchase.Check(p, o); err != nil {
		return purchase.Receipt{}, err
	}
	receipt := purchase.NewReceipt(o, "optimistic", p.Amount-o.Amount, waited)
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		wrote, err := product.SetAmountAt(tx, p.ID, receipt.Left, p.Version)
		if err != nil {
			return purchase.DatabaseError(ctx, "write the stock", err)
		}
		if !wrote {
			return errStale
		}
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

func optimisticEntry() Entry {
	return Entry{
		Name: "optimistic", Family: sqlOnly,
		New: func(d Deps) purchase.Strategy { return NewOptimistic(d) },
	}.holds().withPromiseAboveReadCommitted(promise.Played(), verdict.Holds)
}
