package lockstrategytest

import (
	"context"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/tier"
)

// deaf sells correctly and does not notice that its buyer has hung up.
type deaf struct{ purchase.Strategy }

func (s deaf) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return s.Strategy.Buy(context.WithoutCancel(ctx), o)
}

// selfish answers a buyer that has hung up, but leaves its sale in the database.
type selfish struct{ purchase.Strategy }

func (s selfish) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	receipt, err := s.Strategy.Buy(context.WithoutCancel(ctx), o)
	if ctx.Err() != nil {
		return purchase.Receipt{}, context.Cause(ctx)
	}
	return receipt, err
}

// TestCancelIsCaught: a strategy fails the suite if it sells to a buyer that hung up inside the
// section, whether or not it reports the sale.
func TestCancelIsCaught(t *testing.T) {
	tier.Test(t, "one test, whose program takes longer to link than to run")
	for name, c := range map[string]struct {
		wrap   func(purchase.Strategy) purchase.Strategy
		reason string
	}{
		"deaf":    {func(s purchase.Strategy) purchase.Strategy { return deaf{s} }, "hung up: got <nil>, want context canceled"},
		"selfish": {func(s purchase.Strategy) purchase.Strategy { return selfish{s} }, "Records:2 .*want 1 records"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{auditor: auditor{enginetest.Embedded(t)}, entry: lockstrategy.Entry{Name: name, New: func(d lockstrategy.Deps) purchase.Strategy {
				return c.wrap(lockstrategy.NewConditional(d))
			}}}
			mustCatch(t, w, check{"CancelWhileHolding", cancelWhileHolding, nil, ""}, c.reason)
		})
	}
}
