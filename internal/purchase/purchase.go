// Package purchase sells units of products. It contains the order, its outcome, the record of a sale, and the
// naive critical section that every lock strategy wraps.
//
//	request -> http.go -> Front -> Strategy.Buy -> (lock) -> Section.Sell -> Receipt
//	                                                          read the stock
//	                                                          check it
//	                                                          write the stock  \ one
//	                                                          insert the record / transaction
//
// Front has the layers before a strategy: admission control, idempotency, the sold-out check.
//
// The lock strategies are in internal/lockstrategy, one file each. A correct strategy keeps the invariant
//
//	sum(purchase_history.amount) + product.amount + sum(product_part.amount) = product.stocked
package purchase

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/product"
)

// MaxAmount is the maximum number of units in one order.
const MaxAmount = 1_000

// An Order is a request of one buyer.
type Order struct {
	Product        string
	Purchaser      string
	Amount         int64  // units, 1 to MaxAmount
	IdempotencyKey string // "" or a name that CheckName accepts; a repeated key gets the first answer again
}

// Check returns an error if an order is invalid. It looks at the order alone and does not check that the
// product exists.
func (o Order) Check() error {
	if err := product.CheckName(o.Product); err != nil {
		return fmt.Errorf("product %w", err)
	}
	if err := product.CheckName(o.Purchaser); err != nil {
		return fmt.Errorf("purchaser %w", err)
	}
	if o.Amount < 1 || o.Amount > MaxAmount {
		return fmt.Errorf("amount must be between 1 and %d (got %d)", MaxAmount, o.Amount)
	}
	if o.IdempotencyKey == "" {
		return nil
	}
	if err := product.CheckName(o.IdempotencyKey); err != nil {
		return fmt.Errorf("Idempotency-Key %w", err)
	}
	return nil
}

// A Receipt is the answer to a buyer that bought something. The table purchase_history must contain the
// record with its ID; otherwise the sale is lost.
type Receipt struct {
	ID        int64
	Product   string
	Purchaser string
	Amount    int64
	Left      int64 // units left after this sale, as the strategy saw it
	Strategy  string
	Waited    time.Duration // from the call until it was the buyer's turn
	Replayed  bool          // the sale was made before, under the same Idempotency-Key
}

// NewReceipt returns the receipt for the order o, without the ID, which Insert sets. The parameter `left` is
// the number of units after the sale.
func NewReceipt(o Order, strategy string, left int64, waited time.Duration) Receipt {
	return Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Left: left, Strategy: strategy, Waited: waited}
}

// A Strategy sells Order.Amount units of Order.Product to one buyer, or says why it did not.
//
// Buy returns ErrSoldOut, ErrBusy, ErrLockLost, ErrUnknownOutcome or ErrNoProduct, possibly wrapped, for the
// outcomes of those names. Any other error, such as that of Order.Check, means the outcome Failed. After
// every error except ErrUnknownOutcome, nothing was sold and the stock is unchanged. Buy is safe for
// concurrent use by goroutines, and by processes on the same servers.
type Strategy interface {
	Buy(ctx context.Context, o Order) (Receipt, error)
}

// A Resetter deletes the data that a strategy keeps about a product outside the database, such as a
// lock's key in Redis. A restock calls it while no buyer of this process is inside Buy.
type Resetter interface {
	Reset(ctx context.Context, productName string) error
}

// A StockKeeper is a Resetter that keeps a copy of the stock. A restock calls Reset once more at
// its end, since a buyer of another process may have copied the old stock in the meantime.
type StockKeeper interface {
	Resetter
	KeepsStock()
}

// A Worker is a strategy with background work, for which no buyer waits. A shop runs the work from its start
// to its stop.
type Worker interface {
	// Work returns when ctx ends.
	Work(ctx context.Context)
}
