// Package exercise has the lock in the first store, and a copy of it in the second, which refuses nobody.
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
	key, token := "lock:"+o.Product, s.kit.Token()
	if err := s.lock(ctx, key, token); err != nil {
		return kata.Receipt{}, err
	}
	defer func() {
		for _, store := range s.kit.Stores {
			_, _ = s.kit.DeleteIfMineIn(context.WithoutCancel(ctx), store, key, token)
		}
	}()
	return s.kit.Sell(ctx, o)
}

// lock waits for the key in the first store, and copies it.
func (s *shop) lock(ctx context.Context, key, token string) error {
	for {
		taken, err := s.kit.Stores[0].SetNX(ctx, key, token, 0).Result()
		if err != nil {
			return err
		}
		if taken {
			return s.kit.Stores[1].Set(ctx, key, token, 0).Err()
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return err
		}
	}
}
