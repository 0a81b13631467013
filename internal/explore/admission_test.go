package explore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// TestAdmission: in every schedule, nothing is sold to or recorded for a buyer that the admission
// refuses, and a correct strategy stays correct behind it. A strategy with a race still breaks if
// both buyers are admitted.
func TestAdmission(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		for _, c := range []struct {
			strategy string
			doors    int // number of doors that each buyer passes, out of the 32 places without refusals
			want     verdict.Verdict
		}{
			{"none", 16, verdict.Oversold}, // there is room for both buyers
			{"none", 20, verdict.Holds},    // the second buyer is refused while the first is inside
			{"for-update", 20, verdict.Holds},
			{"conditional", 16, verdict.Holds},
			{"redis-decr", 20, verdict.Holds},
		} {
			t.Run(fmt.Sprintf("%s/%s,%d", e.Name, c.strategy, c.doors), func(t *testing.T) {
				entry := exploretest.Entry(t, c.strategy)
				build := entry.New
				entry.New = func(d lockstrategy.Deps) purchase.Strategy {
					s := build(d)
					admission := purchase.NewAdmission(time.Nanosecond)
					for range c.doors {
						s = admission.Before(c.strategy, s)
					}
					return s
				}
				config := exploretest.Config(e, entry)
				config.Shared = true
				if e.Name != engine.Embedded || c.strategy == "none" {
					config.Bound = 1
				}
				result := search(t, config)
				t.Logf("%d schedules in %.1f s: %v", result.Explored, result.Seconds, result.Verdicts)
				if !result.Complete {
					t.Fatalf("explored %d, not all", result.Explored)
				}
				if c.want == verdict.Holds && result.Violations > 0 || result.Verdicts[c.want] == 0 {
					t.Errorf("%v, want %s; %+v", result.Verdicts, c.want, result.Witness)
				}
			})
		}
	})
}
