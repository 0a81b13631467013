package purchase

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
)

// Idempotent answers a repeated Idempotency-Key with the sale that was made under it, by any strategy. If two
// requests with one key are simultaneous, the unique index on purchase_history.idempotency_key lets only one
// of them sell. Idempotent only looks up the answer.
//
// Requests of this process under one key wait for each other. Otherwise the second one could be
// answered "sold out" while the first one takes the last unit. Only a sale uses up a key. After a
// refusal, the buyer may use the same key again.
type Idempotent struct {
	strategy Strategy
	db       *gorm.DB

	mu       sync.Mutex
	underWay map[string]chan struct{} // by key; closed when the request has ended
}

// NewIdempotent wraps a strategy that sells in the database db. If db is a cluster, a read of any node must see
// everything that was committed before at another one.
func NewIdempotent(s Strategy, db *gorm.DB) *Idempotent {
	return &Idempotent{strategy: s, db: db, underWay: map[string]chan struct{}{}}
}

// Buy implements Strategy. It returns ErrKeyReused if the key belongs to the sale of another order.
func (s *Idempotent) Buy(ctx context.Context, o Order) (Receipt, error) {
	if o.IdempotencyKey == "" {
		return s.strategy.Buy(ctx, o)
	}
	done, err := s.turn(ctx, o.IdempotencyKey)
	if err != nil {
		return Receipt{}, fmt.Errorf("wait for an earlier request under the same Idempotency-Key: %w", err)
	}
	defer done()
	if receipt, found, err := s.earlier(ctx, o); found || err != nil {
		return receipt, err
	}
	receipt, err := s.strategy.Buy(ctx, o)
	if err == nil {
		return receipt, nil
	}
	// Another request with this key may have bought in the meantime, even the last unit.
	if earlier, found, reused := s.earlier(ctx, o); found {
		return earlier, reused
	}
	return Receipt{}, err
}

// turn waits until no request of this process under the key is in progress.
func (s *Idempotent) turn(ctx context.Context, key string) (done func(), _ error) {
	for {
		s.mu.Lock()
		before := s.underWay[key]
		if before == nil {
			mine := make(chan struct{})
			s.underWay[key] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.underWay, key)
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// earlier looks for the sale under the order's key. If that sale belongs to a different order, `found` is true
// and earlier returns an error.
func (s *Idempotent) earlier(ctx context.Context, o Order) (_ Receipt, found bool, _ error) {
	record, err := ByKey(s.db.WithContext(ctx), o.IdempotencyKey)
	if err != nil || record == nil {
		return Receipt{}, false, DatabaseError(ctx, "look up the Idempotency-Key", err)
	}
	if record.ProductName != o.Product || record.Purchaser != o.Purchaser || record.Amount != o.Amount {
		return Receipt{}, true, fmt.Errorf("%w: %d of %q for %q", ErrKeyReused, record.Amount, record.ProductName, record.Purchaser)
	}
	err = onDisk(ctx, s.db, record.ID)
	for errors.Is(err, ErrBusy) && ctx.Err() == nil { // another request under the key writes to the same row
		select {
		case <-time.After(time.Duration(1+rand.IntN(10)) * time.Millisecond): // a random pause, since otherwise two requests at two nodes could refuse each other forever
		case <-ctx.Done():
		}
		err = onDisk(ctx, s.db, record.ID)
	}
	if err != nil {
		return Receipt{}, false, err
	}
	return record.receipt(), true, nil
}

// onDisk returns when the record that the caller read would survive a crash of the database. A database may
// show a commit to readers before the commit is on the disk, or on a replica. Once a later transaction that
// writes has committed, all earlier commits in the log are safe too. So onDisk changes a value and restores it.
func onDisk(ctx context.Context, db *gorm.DB, id int64) error {
	if !dialect.Of(db).ShowsEarly {
		return nil
	}
	return InTx(ctx, db, func(tx *gorm.DB) error {
		for _, by := range []int{1, -1} {
			if err := tx.Exec("UPDATE purchase_history SET waited_ms = waited_ms + ? WHERE id = ?", by, id).Error; err != nil {
				return DatabaseError(ctx, "see that the sale is on the disk", err)
			}
		}
		return nil
	})
}
