package main

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// soldOutCheck is the flag.
const soldOutCheck = "sold-out-check"

// unchecked says why there is no sold-out check on this engine though the flags ask for
// it; "" where there is one, or none is wanted. It takes the flag back.
func (f *shopFlags) unchecked(e *engine.Engine) string {
	why := e.Lacks[dialect.CurrentReads]
	if !f.check || why == "" {
		return ""
	}
	f.check = false
	return "--" + soldOutCheck + ": this database cannot tell what is left without a lock: " + why
}

// checkFor is the check of one strategy: the one of all that sell from product.amount, or
// one of its own.
func (s *shop) checkFor(name string) *purchase.SoldOutCheck {
	if entry, ok := lockstrategy.ByName(name); ok && entry.Left != nil {
		return s.newCheck(entry.Left)
	}
	return s.soldOut
}

// newCheck reads beside the buyers: in their pool it would stand in line behind those whom
// it is to overtake. A database that hangs must not cost a buyer the whole wait before its
// strategy, which may not need it, is asked.
func (s *shop) newCheck(left func(db *gorm.DB, product string) (int64, error)) *purchase.SoldOutCheck {
	return purchase.NewSoldOutCheck(func(ctx context.Context, product string) (int64, error) {
		return left(s.engine.Admin.WithContext(ctx), product)
	}, s.flags.settings.Wait/4)
}
