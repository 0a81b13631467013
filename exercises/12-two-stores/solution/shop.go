// Package exercise is the reference: the holder has the key in both stores. All buyers take the keys in
// the same order, and each deletes only its own keys.
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
	for _, store := range s.kit.Stores {
		if err := s.lock(ctx, store, key, token); err != nil {
			return kata.Receipt{}, err
		}
		defer s.kit.DeleteIfMineIn(context.WithoutCancel(ctx), store, key, token) //nolint:errcheck // if it deletes nothing, the store has lost the key
	}
	return s.kit.Sell(ctx, o)
}

// lock waits for the key in a store.
func (s *shop) lock(ctx context.Context, store kata.Store, key, token string) error {
	for {
		taken, err := store.SetNX(ctx, key, token, 0).Result()
		if err != nil || taken {
			return err
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return err
		}
	}
}
