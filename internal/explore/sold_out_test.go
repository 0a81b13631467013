package explore_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/tier"
)

// TestSoldOutCheck: with the check in use from the first buyer on, a correct strategy holds in
// every schedule: no buyer is refused while a unit stays unsold (such a unit would count as
// leaked). The check hides no race: a strategy that breaks without it breaks with it.
func TestSoldOutCheck(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		if e.Name != engine.Embedded {
			tier.Soak(t, "the embedded engine has the same rows")
		}
		for _, c := range []struct {
			strategy string
			shared   bool // whether both buyers use one check
			want     verdict.Verdict
		}{
			{"none", false, verdict.Oversold},
			{"none", true, verdict.Oversold},
			{"mutex", false, verdict.Oversold},
			{"mutex", true, verdict.Holds},
			{"for-update", false, verdict.Holds},
			{"for-update", true, verdict.Holds},
			{"conditional", true, verdict.Holds},
			{"check-after", true, verdict.Holds}, // a rollback returns its units
			{"optimistic", true, verdict.Holds},
			{"redis-decr", false, verdict.Holds}, // an INCR returns its units
			{"coalesced", false, verdict.Holds},
			{"coalesced", true, verdict.Holds},
			{"bucketed", false, verdict.Holds}, // its units are in rows of their own
			{"unit-rows", false, verdict.Holds},
		} {
			t.Run(fmt.Sprintf("%s/%s,shared=%v", e.Name, c.strategy, c.shared), func(t *testing.T) {
				entry := exploretest.Entry(t, c.strategy)
				if why := entry.Missing(onengine.Deps(e)); why != "" {
					t.Skip(why)
				}
				config := exploretest.Config(e, asking(entry))
				config.Shared = c.shared
				if entry.Left != nil {
					config.Parts = 2
				}
				switch { // other databases run each schedule; nothing is merged within one process
				case e.Name != engine.Embedded:
					config.Bound = 1
				case c.shared:
					config.Bound = 2
				}
				result := search(t, config)
				t.Logf("%d schedules in %.1f s: %v", result.Explored, result.Seconds, result.Verdicts)
				if !result.Complete || result.Explored < 2 {
					t.Fatalf("explored %d, complete %v: proves nothing", result.Explored, result.Complete)
				}
				if c.want == verdict.Holds && (result.Violations > 0 || result.Early > 0) || result.Verdicts[c.want] == 0 {
					t.Errorf("%v, want %s; %+v", result.Verdicts, c.want, result.Witness)
				}
			})
		}
	})
}

// TestSoldOutCheckUnits: two buyers ask for two of three units each, and one order is filled. A
// check without an earlier refusal is not used and changes no schedule.
func TestSoldOutCheckUnits(t *testing.T) {
	e := enginetest.Embedded(t)
	plain := exploretest.Config(e, exploretest.Entry(t, "conditional"))
	plain.Stock, plain.Units = 3, explore.Units{2}
	behind := plain
	behind.Strategy = asking(plain.Strategy)
	if result := search(t, behind); !result.Complete || result.Violations > 0 {
		t.Errorf("%v, complete %v; want that all hold", result.Verdicts, result.Complete)
	}
	behind.Strategy.New = func(d lockstrategy.Deps) purchase.Strategy {
		return check(d, plain.Strategy).Before(plain.Strategy.New(d))
	}
	without, with := search(t, plain), search(t, behind)
	if with.Explored != without.Explored || !maps.Equal(with.Verdicts, without.Verdicts) {
		t.Errorf("%d schedules, %v; without the check %d, %v", with.Explored, with.Verdicts, without.Explored, without.Verdicts)
	}
}

// asking puts a strategy behind a check that has seen a refusal.
func asking(entry lockstrategy.Entry) lockstrategy.Entry {
	build := entry.New
	entry.New = func(d lockstrategy.Deps) purchase.Strategy {
		c := check(d, entry)
		_, _ = c.Before(refusing{}).Buy(context.Background(), purchase.Order{Product: "explored", Amount: 1})
		return c.Before(build(d))
	}
	return entry
}

// check reads over connections that the explorer controls.
func check(d lockstrategy.Deps, entry lockstrategy.Entry) *purchase.SoldOutCheck {
	return purchase.NewSoldOutCheck(func(ctx context.Context, name string) (int64, error) {
		if entry.Left != nil {
			return entry.Left(d.DB.WithContext(ctx), name)
		}
		p, err := product.ByName(d.DB.WithContext(ctx), name)
		return p.Amount, err
	}, time.Hour)
}

type refusing struct{}

func (refusing) Buy(context.Context, purchase.Order) (purchase.Receipt, error) {
	return purchase.Receipt{}, purchase.ErrSoldOut
}
