package own_test

import (
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestManyBuyers: the explorer controls eight buyers as well as two.
func TestManyBuyers(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, start func(t *testing.T) *engine.Engine) {
		e := start(t)
		for _, want := range []struct {
			strategy string
			verdict  verdict.Verdict
		}{
			{"none", verdict.Oversold},
			{"for-update", verdict.Holds},
			{"serializable", verdict.Holds},
			{"redis", verdict.Holds},
			{"queue", verdict.Holds},
			{"coalesced", verdict.Holds},
			{"bucketed", verdict.Holds},
			{"redisson", verdict.Holds},
		} {
			t.Run(want.strategy, func(t *testing.T) {
				entry := exploretest.Entry(t, want.strategy)
				c := exploretest.Config(e, entry)
				c.Buyers, c.Bound, c.Symmetry, c.Schedules = explore.MaxBuyers, 1, true, 25
				result, err := exploretest.Open(t, c).Search(t.Context())
				if err != nil || result.Runs != 25 || result.Within < 0 {
					t.Errorf("%d runs, all of %d preemptions, %v", result.Runs, result.Within, err)
				}
				for v := range result.Verdicts {
					if v != verdict.Holds && v != want.verdict {
						t.Errorf("%s: %+v", v, result.Witness)
					}
				}
				if (result.Violations > 0) != (want.verdict != verdict.Holds) {
					t.Errorf("%d violations, want %s", result.Violations, want.verdict)
				}
			})
		}
	})
}
