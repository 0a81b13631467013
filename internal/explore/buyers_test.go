package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/verdict"
)

var errEnough = errors.New("enough")

// some explores until so many schedules were run.
func some(t *testing.T, c explore.Config, schedules int) explore.Result {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c.Progress = func(explored, _ int) {
		if explored >= schedules {
			cancel(errEnough)
		}
	}
	result, err := open(t, c).Search(ctx)
	if err != nil && !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	return result
}

// TestManyBuyers: five and eight are as well under control as two.
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
			{"redisson", verdict.Holds},
		} {
			for _, buyers := range []int{5, explore.MaxBuyers} {
				t.Run(fmt.Sprintf("%s/%d", want.strategy, buyers), func(t *testing.T) {
					entry, _ := lockstrategy.ByName(want.strategy)
					c := config(e, entry)
					c.Buyers, c.Bound, c.Alike = buyers, 1, true
					result := some(t, c, 25)
					if result.Explored < 25 || result.Within < 0 {
						t.Errorf("explored %d, all of %d preemptions", result.Explored, result.Within)
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
		}
	})
}

// TestAlike: it makes no difference but in name which of the buyers who have
// not begun begins.
func TestAlike(t *testing.T) {
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		strategy string
		events   []explore.Event
	}{
		{"none", nil}, {"conditional", nil}, {"setnx", []explore.Event{crash}}, {"redis", []explore.Event{expire}},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			entry, _ := lockstrategy.ByName(c.strategy)
			config := config(e, entry)
			config.Buyers, config.Bound, config.Events = 3, 1, c.events
			if len(c.events) > 0 {
				config.Bound = 0
			}
			all, err := open(t, config).Search(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			config.Alike = true
			alike, err := open(t, config).Search(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// Each order of the first steps of three is there once, not six times.
			if !all.Complete || !alike.Complete || all.Explored != 6*alike.Explored {
				t.Errorf("explored %d (%v) and alike %d (%v), want six times as many", all.Explored, all.Complete, alike.Explored, alike.Complete)
			}
			for v, n := range all.Verdicts {
				if n != 6*alike.Verdicts[v] {
					t.Errorf("%s: %d schedules, and alike %d", v, n, alike.Verdicts[v])
				}
			}
		})
	}
}

// TestWithin: a search that is cut short knows which bound it has completed.
func TestWithin(t *testing.T) {
	e := enginetest.Embedded(t)
	entry, _ := lockstrategy.ByName("none")
	c := config(e, entry)
	c.Bound = 1
	bounded, err := open(t, c).Search(t.Context())
	if err != nil || !bounded.Complete {
		t.Fatal(err, bounded)
	}
	c.Bound = -1
	cut := some(t, c, bounded.Explored+5)
	if cut.Complete || cut.Within != 1 || cut.ExploredWithin != bounded.Explored {
		t.Errorf("complete %v, all %d schedules of at most %d preemptions; want false, all %d of at most 1", cut.Complete, cut.ExploredWithin, cut.Within, bounded.Explored)
	}
	early := some(t, c, 1)
	if early.Within != -1 {
		t.Errorf("after one schedule all of at most %d preemptions", early.Within)
	}
}
