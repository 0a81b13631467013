package purchase

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
)

// Section is the naive critical section that every tutorial starts from: read the stock, check it, and write
// the computed number. If another buyer buys between the read and the write, the write overwrites that sale.
// Lock strategies wrap exactly this code, so the lock is the only difference between them.
type Section struct {
	DB       *gorm.DB
	Strategy string           // written into each record
	Now      func() time.Time // the time of the record
}

// Sell runs the section once. The parameter `waited`, the time that the buyer waited before, goes into the
// record and the receipt. The errors are those of Strategy.Buy.
func (s Section) Sell(ctx context.Context, o Order, waited time.Duration) (receipt Receipt, _ error) {
	p, err := product.ByName(s.DB.WithContext(ctx), o.Product) // outside the transaction
	if err != nil {
		return Receipt{}, DatabaseError(ctx, "read the stock", err)
	}
	if err := Check(p, o); err != nil {
		return Receipt{}, err
	}
	err = InTx(ctx, s.DB, func(tx *gorm.DB) error {
		receipt, err = s.Write(ctx, tx, p, o, waited)
		return err
	})
	if err != nil {
		return Receipt{}, err
	}
	return receipt, nil
}

// SellFenced does the same as Sell for the holder of a fencing token, a number greater than that of any earlier
// holder of the product's lock. If a holder has lost its lease unnoticed, it gets ErrLockLost as soon as a
// later holder has begun.
//
// The holder shows the token twice. If it showed the token only at the write, an update could be lost. Holder
// 2 reads 10. Holder 1 is late and writes 9 under token 1, the highest so far. Holder 2 writes 9 under token
// 2: two sales, but the stock fell by 1. So holder 2 first seals the product: it stores its token in the
// product's row before it reads.
func (s Section) SellFenced(ctx context.Context, o Order, token int64, waited time.Duration) (receipt Receipt, _ error) {
	sealed, err := product.Seal(s.DB.WithContext(ctx), o.Product, token)
	if err != nil {
		return Receipt{}, DatabaseError(ctx, "seal the stock", err)
	}
	p, err := product.ByName(s.DB.WithContext(ctx), o.Product)
	if err != nil {
		return Receipt{}, DatabaseError(ctx, "read the stock", err)
	}
	if !sealed {
		return Receipt{}, fmt.Errorf("%w: token %d is not above the %d that was here already", ErrLockLost, token, p.Fence)
	}
	if p.Fence < token {
		// In a cluster, the read may go to another node than the write of the token (the seal). If that node
		// has not applied the seal, it may also lack earlier sales. If the read shows the seal, it shows all
		// of those sales.
		return Receipt{}, fmt.Errorf("%w: the row that was read is older than the seal of token %d", ErrBusy, token)
	}
	if err := Check(p, o); err != nil {
		return Receipt{}, err
	}
	err = InTx(ctx, s.DB, func(tx *gorm.DB) error {
		receipt = NewReceipt(o, s.Strategy, p.Amount-o.Amount, waited)
		written, err := product.SetAmountFenced(tx, p.ID, receipt.Left, token)
		if err != nil {
			return DatabaseError(ctx, "write the stock", err)
		}
		if !written {
			return fmt.Errorf("%w: a later holder than token %d has sealed the stock", ErrLockLost, token)
		}
		return Insert(ctx, tx, o.IdempotencyKey, s.Now(), &receipt)
	})
	if err != nil {
		return Receipt{}, err
	}
	return receipt, nil
}

// Check returns ErrSoldOut if the product p that the caller has read has fewer units than the order asks for.
func Check(p product.Product, o Order) error {
	if p.Amount < o.Amount {
		return fmt.Errorf("%w: %d left", ErrSoldOut, p.Amount)
	}
	return nil
}

// Write computes the new stock from the product p that the caller has read, writes it, and inserts the
// record. Only the caller's lock prevents a sale between the read and this write.
func (s Section) Write(ctx context.Context, tx *gorm.DB, p product.Product, o Order, waited time.Duration) (Receipt, error) {
	receipt := NewReceipt(o, s.Strategy, p.Amount-o.Amount, waited)
	if err := product.SetAmount(tx, p.ID, receipt.Left); err != nil {
		return Receipt{}, DatabaseError(ctx, "write the stock", err)
	}
	return receipt, Insert(ctx, tx, o.IdempotencyKey, s.Now(), &receipt)
}
