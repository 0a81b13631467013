package main

import (
	"context"
	"sync"

	"github.com/oversell/oversell/internal/purchase"
)

// dropping does not record the Idempotency-Key of a sale. It may keep the key in the memory of one
// process.
type dropping struct {
	purchase.Strategy
	remembers bool

	mu    sync.Mutex
	sales map[string]purchase.Receipt
}

func (s *dropping) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	key := o.IdempotencyKey
	o.IdempotencyKey = "" // the bug
	s.mu.Lock()
	receipt, bought := s.sales[key]
	s.mu.Unlock()
	if bought {
		return receipt, nil
	}
	receipt, err := s.Strategy.Buy(ctx, o)
	if err == nil && s.remembers && key != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sales == nil {
			s.sales = map[string]purchase.Receipt{}
		}
		s.sales[key] = receipt
	}
	return receipt, err
}
