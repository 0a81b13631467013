// Package exercise takes a lock that somebody else has for an empty shelf.
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
	taken, err := s.kit.Redis.SetNX(ctx, key, "1", 0).Result()
	if err != nil {
		return kata.Receipt{}, err
	}
	if !taken {
		return kata.Receipt{}, kata.ErrSoldOut
	}
	defer s.kit.Redis.Del(context.WithoutCancel(ctx), key)
	return s.kit.Sell(ctx, o)
}
