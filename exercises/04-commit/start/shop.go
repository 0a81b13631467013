// Package exercise releases its lock a moment too early.
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
func (s *shop) Buy(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	key, token := "lock:"+o.Product, s.kit.Token()
	if err := s.lock(ctx, key, token); err != nil {
		return receipt, err
	}
	p, err := s.kit.Read(ctx, s.kit.DB, o.Product)
	if err == nil {
		err = s.kit.Check(p, o)
	}
	if err != nil {
		s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, token) //nolint:errcheck // the lease expires by itself
		return receipt, err
	}
	err = s.kit.InTx(ctx, func(tx *gorm.DB) error {
		defer s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, token) //nolint:errcheck // the lease expires by itself
		if _, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = ? WHERE name = ?", p.Amount-o.Amount, o.Product); err != nil {
			return err
		}
		receipt, err = s.kit.Record(ctx, tx, o, p.Amount-o.Amount)
		return err
	})
	return receipt, err
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
