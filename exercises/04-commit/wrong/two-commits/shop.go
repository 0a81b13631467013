// Package exercise frees the lock after the COMMIT of the stock, and records the sale later.
package exercise

import (
	"context"

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
		s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, token) //nolint:errcheck // it runs out by itself
		return receipt, err
	}
	rows, err := s.kit.Exec(ctx, s.kit.DB, "UPDATE product SET amount = ? WHERE name = ?", p.Amount-o.Amount, o.Product)
	s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, token) //nolint:errcheck // it runs out by itself
	if err != nil || rows == 0 {
		return receipt, err
	}
	return s.kit.Record(ctx, s.kit.DB, o, p.Amount-o.Amount)
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
