package purchase

import (
	"context"
	"fmt"

	"gorm.io/gorm"
)

// Idempotent makes a strategy answer a repeated Idempotency-Key with the sale
// that stands under it, whatever strategy made that sale. The unique index on
// purchase_history.idempotency_key decides between two at once; this only
// looks the answer up. A key is bound by a sale: a refusal is not remembered,
// so the same key may buy later.
type Idempotent struct {
	Strategy Strategy
	DB       *gorm.DB
}

// Buy is Strategy.Buy. ErrKeyReused when the key's sale was of another order.
func (s Idempotent) Buy(ctx context.Context, o Order) (Receipt, error) {
	if o.IdempotencyKey == "" {
		return s.Strategy.Buy(ctx, o)
	}
	if receipt, found, err := s.earlier(ctx, o); found || err != nil {
		return receipt, err
	}
	receipt, err := s.Strategy.Buy(ctx, o)
	if err == nil {
		return receipt, nil
	}
	// Another request with this key may have sold meanwhile: the last unit, even.
	if earlier, found, reused := s.earlier(ctx, o); found {
		return earlier, reused
	}
	return Receipt{}, err
}

// earlier looks for the sale under the order's key. found is true with an
// error when there is one, of a different order.
func (s Idempotent) earlier(ctx context.Context, o Order) (_ Receipt, found bool, _ error) {
	record, err := ByKey(s.DB.WithContext(ctx), o.IdempotencyKey)
	if err != nil || record == nil {
		return Receipt{}, false, DatabaseError(ctx, "look up the Idempotency-Key", err)
	}
	if record.ProductName != o.Product || record.Purchaser != o.Purchaser || record.Amount != o.Amount {
		return Receipt{}, true, fmt.Errorf("%w: %d of %q for %q", ErrKeyReused, record.Amount, record.ProductName, record.Purchaser)
	}
	return record.receipt(), true, nil
}
