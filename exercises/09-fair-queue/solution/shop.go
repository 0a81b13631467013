// Package exercise is the reference: buyers wait in a queue in Redis, and the first one is served.
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
	line, me := "line:"+o.Product, s.kit.Token()
	if err := s.kit.Redis.RPush(ctx, line, me).Err(); err != nil {
		return kata.Receipt{}, err
	}
	defer s.kit.Redis.LRem(context.WithoutCancel(ctx), line, 1, me) // a buyer that gives up leaves the queue, too
	for {
		first, err := s.kit.Redis.LIndex(ctx, line, 0).Result()
		if err != nil {
			return kata.Receipt{}, err
		}
		if first == me {
			return s.kit.Sell(ctx, o)
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return kata.Receipt{}, err
		}
	}
}
