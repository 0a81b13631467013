// Package exercise has a lock in the memory of one process. The shop has two.
package exercise

import (
	"context"
	"sync"

	"github.com/oversell/oversell/exercises/kata"
)

var mu sync.Mutex

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy sells o.Amount units of o.Product to o.Purchaser.
func (s *shop) Buy(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	mu.Lock()
	defer mu.Unlock()
	return s.kit.Sell(ctx, o)
}
