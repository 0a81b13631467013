package own_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
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
