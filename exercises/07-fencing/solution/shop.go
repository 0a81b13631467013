// Package exercise is the reference: it has a number that grows with each grant of the lock. The
// database checks this number twice, before the read and at the write.
package exercise

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy sells o.Amount units of o.Product to o.Purchaser.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	key, token := "lock:"+o.Product, s.kit.Token()
	if err := s.lock(ctx, key, token); err != nil {
		return kata.Receipt{}, err
	}
	defer s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, token)  //nolint:errcheck // the lease expires by itself
	number, err := s.kit.Redis.Incr(ctx, "fence:"+o.Product).Result() // no earlier holder has this number
	if err != nil {
		return kata.Receipt{}, err
	}
	return s.sell(ctx, o, number)
}

// lock waits for the lease.
func (s *shop) lock(ctx context.Context, key, token string) error {
	for {
		taken, err := s.kit.Redis.SetNX(ctx, key, token, s.kit.TTL).Result()
		if err != nil || taken {
			return err
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return err
		}
	}
}

// sell sells, unless a later holder has started.
func (s *shop) sell(ctx context.Context, o kata.Order, number int64) (receipt kata.Receipt, err error) {
	sealed, err := s.kit.Exec(ctx, s.kit.DB, "UPDATE product SET fence = ? WHERE name = ? AND fence < ?", number, o.Product, number)
	if err != nil {
		return receipt, err
	}
	if sealed == 0 {
		return receipt, kata.ErrLockLost
	}
	p, err := s.kit.Read(ctx, s.kit.DB, o.Product)
	if err == nil {
		err = s.kit.Check(p, o)
	}
	if err != nil {
		return receipt, err
	}
	err = s.kit.InTx(ctx, func(tx *gorm.DB) error {
		written, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = ? WHERE name = ? AND fence = ?", p.Amount-o.Amount, o.Product, number)
		if err != nil {
			return err
		}
		if written == 0 {
			return kata.ErrLockLost
		}
		receipt, err = s.kit.Record(ctx, tx, o, p.Amount-o.Amount)
		return err
	})
	return receipt, err
}
