package own_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestKeepsControl runs each strategy under random combinations of all events. In each state, the
// explorer must be able to tell the waiting commands apart. A search would reach such combinations
// late.
func TestKeepsControl(t *testing.T) {
	tier.Test(t, "schedules of each strategy under all events")
	e, schedules, strategies := enginetest.Embedded(t), 25, 0
	if tier.Soaking() {
		schedules = 400
	}
	for _, entry := range lockstrategy.All() {
		if entry.Missing(onengine.Deps(e)) != "" || explore.Ungated(entry) != "" {
			continue
		}
		strategies++
		for _, shared := range []bool{false, true} {
			if shared && entry.WritesLater {
				continue // a command of its worker belongs to no particular buyer of the process
			}
			t.Run(fmt.Sprintf("%s/shared=%t", entry.Name, shared), func(t *testing.T) {
				x, err := own.New(t.Context(), own.Spec{
					Engine: e, Strategy: entry, Buyers: 2, Stock: 1, Product: "explored", Events: explore.Events(shared), Shared: shared, Full: true,
				})
				require.NoError(t, err)
				random := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // each run has the same schedules
				for range schedules {
					ended, err := x.Run(t.Context(), func(p *schedule.Point) (string, error) {
						if p.AtEnd() {
							return schedule.Judge, nil
						}
						return p.Choices[random.IntN(len(p.Choices))].Token, nil
					}, false)
					if err != nil {
						t.Errorf("%v: %v", ended.Tokens, err)
						break
					}
				}
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if strategies < 24 {
		t.Errorf("only %d strategies", strategies)
	}
}

// TestWatchdogStops: a watchdog that stops at the end of the buyer's context is never due after Buy has returned.
func TestWatchdogStops(t *testing.T) {
	entry := lockstrategy.Entry{Name: "planted", Needs: []lockstrategy.Need{lockstrategy.NeedsRedis}, New: func(d lockstrategy.Deps) purchase.Strategy {
		return forgotten{d}
	}}
	x, err := own.New(t.Context(), own.Spec{
		Engine: enginetest.Embedded(t), Strategy: entry, Buyers: 2, Stock: 1, Product: "explored", Events: []explore.Event{explore.Renew},
	})
	require.NoError(t, err)
	defer x.Close()
	due := map[bool]int{} // points at which buyer 1's watchdog is due, by whether its Buy has returned
	_, err = x.Run(t.Context(), func(p *schedule.Point) (string, error) {
		ofFirst := func(c schedule.Choice) bool { return c.Buyer == 1 && c.Command() }
		if _, is := schedule.Find(p.Choices, "renew1"); is {
			due[!slices.ContainsFunc(p.Choices, ofFirst)]++
		}
		return p.FirstMove(), nil
	}, false)
	require.NoError(t, err)
	if due[false] == 0 || due[true] > 0 {
		t.Errorf("the watchdog is due at %d points before Buy has returned, and at %d later", due[false], due[true])
	}
}

// forgotten leaves it to the end of the buyer's context to stop the watchdog. That takes a moment.
type forgotten struct{ deps lockstrategy.Deps }

func (s forgotten) Buy(ctx context.Context, _ purchase.Order) (receipt purchase.Receipt, err error) {
	timer := s.deps.Renewal(ctx, time.Hour, func(context.Context) {})
	context.AfterFunc(ctx, func() {
		for range 1000 {
			runtime.Gosched()
		}
		timer.Stop()
	})
	if err := s.deps.Redis.Set(ctx, "planted:held", "1", 0).Err(); err != nil {
		return receipt, err
	}
	return receipt, purchase.ErrSoldOut
}
