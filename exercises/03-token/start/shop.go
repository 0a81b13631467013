// Package exercise has a lease. Its release deletes the key, even if another buyer owns it by then.
package exercise

import (
	"context"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy sells o.Amount units of o.Product to o.Purchaser.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	key := "lock:" + o.Product
	if err := s.lock(ctx, key, "1"); err != nil {
		return kata.Receipt{}, err
	}
	defer s.kit.Redis.Del(context.WithoutCancel(ctx), key)
	return s.kit.Sell(ctx, o)
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
