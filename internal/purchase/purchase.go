// Package purchase is the sale: the order, its outcome, the record, and the
// naive critical section that every lock strategy wraps.
//
//	request -> http.go -> Strategy.Buy -> (lock) -> Section.Sell -> Receipt
//	                                                 read the stock
//	                                                 check it
//	                                                 write the stock  \ one
//	                                                 insert the record / transaction
//
// It is not the place for any way to keep buyers apart: those live in
// internal/lockstrategy, one file each. The invariant that they must keep is
//
//	sum(purchase_history.amount) + product.amount + sum(product_part.amount) = product.stocked
package purchase

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/product"
)

// MaxAmount is the largest number of units that one order may ask for.
const MaxAmount = 1_000

// An Order is what one buyer asks for.
type Order struct {
	Product        string
	Purchaser      string
	Amount         int64  // units, 1 to MaxAmount
	IdempotencyKey string // "" for none, bound as names are; repeated, it gets the first answer again
}

// Check says what is wrong with an order; nil when nothing is. It looks at the order
// alone: whether the product exists is found out at the sale.
func (o Order) Check() error {
	if err := product.CheckName(o.Product); err != nil {
		return fmt.Errorf("product %w", err)
	}
	if err := product.CheckName(o.Purchaser); err != nil {
		return fmt.Errorf("purchaser %w", err)
	}
	if o.Amount < 1 || o.Amount > MaxAmount {
		return fmt.Errorf("amount is %d; 1 to %d are allowed", o.Amount, MaxAmount)
	}
	if o.IdempotencyKey == "" {
		return nil
	}
	if err := product.CheckName(o.IdempotencyKey); err != nil {
		return fmt.Errorf("Idempotency-Key %w", err)
	}
	return nil
}

// A Receipt is the answer to a buyer that was sold something. Its record is in
// purchase_history under ID, or the sale is lost.
type Receipt struct {
	ID        int64
	Product   string
	Purchaser string
	Amount    int64
	Left      int64 // units left after this sale, as the seller saw it
	Strategy  string
	Waited    time.Duration // from the call until it was the buyer's turn
	Replayed  bool          // the sale was made before, under the same Idempotency-Key
}

// NewReceipt returns the receipt of a sale to o that leaves left units. The record sets its ID.
func NewReceipt(o Order, strategy string, left int64, waited time.Duration) Receipt {
	return Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Left: left, Strategy: strategy, Waited: waited}
}

// A Strategy sells Order.Amount units of Order.Product to one buyer, or says why it
// did not.
//
// Buy returns ErrSoldOut, ErrBusy, ErrLockLost, ErrUnknownOutcome or
// ErrNoProduct, wrapped, for the outcomes of those names; any other error is
// Failed, such as that of an order that Order.Check refuses. On every error but
// ErrUnknownOutcome nothing was sold and the stock is unchanged. Any number of goroutines may call it at once, and so may any
// number of processes on the same servers.
type Strategy interface {
	Buy(ctx context.Context, o Order) (Receipt, error)
}

// A Resetter removes what a strategy keeps of a product outside the database, such as
// a lock's key in Redis. A restock calls it while no buyer of this process is inside
// Buy.
type Resetter interface {
	Reset(ctx context.Context, productName string) error
}

// A StockKeeper is a Resetter that keeps a copy of the stock. A restock calls Reset
// once more at its end: a buyer of another process may have copied the old stock
// meanwhile.
type StockKeeper interface {
	Resetter
	KeepsStock()
}

// A Worker has work that no buyer waits for. A shop runs it from its start to its end.
type Worker interface {
	// Work returns when ctx ends.
	Work(ctx context.Context)
}
