package web

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// checkFor is the check of one strategy: the one of all that sell from product.amount, or
// one of its own.
func (s *Shop) checkFor(name string) *purchase.SoldOutCheck {
	if entry, ok := lockstrategy.ByName(name); ok && entry.Left != nil {
		return s.newCheck(entry.Left)
	}
	return s.soldOut
}

// newCheck reads beside the buyers: in their pool it would stand in line behind those whom
// it is to overtake. A database that hangs must not cost a buyer the whole wait before its
// strategy, which may not need it, is asked.
func (s *Shop) newCheck(left func(db *gorm.DB, product string) (int64, error)) *purchase.SoldOutCheck {
	return purchase.NewSoldOutCheck(func(ctx context.Context, product string) (int64, error) {
		return left(s.engine.Admin.WithContext(ctx), product)
	}, s.config.Settings.Wait/4)
}
