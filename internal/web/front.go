package web

import (
	"context"

	"github.com/oversell/oversell/internal/purchase"
)

func (s *Shop) newFront() purchase.Front {
	c := s.config
	f := purchase.Front{Orders: s.engine.Causal}
	if c.Admission {
		f.Admission = purchase.NewAdmission(c.Settings.Wait)
	}
	if c.SoldOutCheck {
		f.SoldOut = s.newCheck
	}
	if c.Failpoints != nil {
		f.Failpoints = c.Failpoints.Named
	}
	return f
}

// newCheck returns a sold-out check with connections of its own. In the buyers' pool, its reads would wait
// behind the buyers. A read has a short time-out. Otherwise a database that hangs would use up a buyer's
// whole wait before the strategy runs.
func (s *Shop) newCheck(left purchase.OfStock) *purchase.SoldOutCheck {
	return purchase.NewSoldOutCheck(func(ctx context.Context, product string) (int64, error) {
		return left(s.engine.Admin.WithContext(ctx), product)
	}, s.config.Settings.Wait/4)
}
