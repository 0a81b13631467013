// Package bad tries again and again without a pause.
package bad

import (
	"context"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy is bad.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	for {
		taken, err := s.kit.Redis.SetNX(ctx, "lock", "1", 0).Result()
		if err != nil {
			return kata.Receipt{}, err
		}
		if taken {
			break
		}
	}
	defer s.kit.Redis.Del(context.WithoutCancel(ctx), "lock")
	return s.kit.Sell(ctx, o)
}
