package main

import (
	"context"
	"errors"
	"sync"

	"github.com/oversell/oversell/internal/purchase"
)

// remembering keeps late buyers away from the database: it remembers that a product was sold out.
// The bug: it still does so after a restock.
type remembering struct {
	purchase.Strategy
	soldOut sync.Map // by product
}

func (s *remembering) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	if _, gone := s.soldOut.Load(o.Product); gone {
		return purchase.Receipt{}, purchase.ErrSoldOut
	}
	receipt, err := s.Strategy.Buy(ctx, o)
	if errors.Is(err, purchase.ErrSoldOut) {
		s.soldOut.Store(o.Product, true)
	}
	return receipt, err
}
