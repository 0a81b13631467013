// Package exercise waits for itself.
package exercise

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy reads the stock and sells by what it has read.
func (s *shop) Buy(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	unlock, err := s.lock(ctx, o.Product)
	if err != nil {
		return receipt, err
	}
	defer unlock()
	p, err := s.Stock(ctx, o.Product)
	if err == nil {
		err = s.kit.Check(p, o)
	}
	if err != nil {
		return receipt, err
	}
	err = s.kit.InTx(ctx, func(tx *gorm.DB) error {
		if _, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = ? WHERE name = ?", p.Amount-o.Amount, o.Product); err != nil {
			return err
		}
		receipt, err = s.kit.Record(ctx, tx, o, p.Amount-o.Amount)
		return err
	})
	return receipt, err
}

// Stock reads the stock while no buyer changes it. It is called from outside, too, so it takes the
// lock itself.
func (s *shop) Stock(ctx context.Context, product string) (kata.Product, error) {
	unlock, err := s.lock(ctx, product)
	if err != nil {
		return kata.Product{}, err
	}
	defer unlock()
	return s.kit.Read(ctx, s.kit.DB, product)
}

// lock waits for the lock of a product.
func (s *shop) lock(ctx context.Context, product string) (unlock func(), _ error) {
	key, token := "lock:"+product, s.kit.Token()
	for {
		taken, err := s.kit.Redis.SetNX(ctx, key, token, 0).Result()
		if err != nil {
			return nil, err
		}
		if taken {
			return func() { _, _ = s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, token) }, nil
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return nil, err
		}
	}
}
