// Package exercise serves the buyer that happens to try at the right moment.
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
	defer s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, token) //nolint:errcheck // the lease expires by itself
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
