package web

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// checkFor returns the check of a strategy: the shared one of all strategies that sell from
// product.amount, or its own.
func (s *Shop) checkFor(name string) *purchase.SoldOutCheck {
	if entry, ok := lockstrategy.ByName(name); ok && entry.Left != nil {
		return s.newCheck(entry.Left)
	}
	return s.soldOut
}

// newCheck returns a check with connections of its own. In the buyers' pool it would wait behind
// the very buyers that it should overtake. Its read has a short time-out, so that a database that
// hangs does not take a buyer's whole wait before the strategy runs.
func (s *Shop) newCheck(left func(db *gorm.DB, product string) (int64, error)) *purchase.SoldOutCheck {
	return purchase.NewSoldOutCheck(func(ctx context.Context, product string) (int64, error) {
		return left(s.engine.Admin.WithContext(ctx), product)
	}, s.config.Settings.Wait/4)
}
