package explore_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/tier"
)

// TestSymmetry: it does not matter which of the buyers that have not begun begins, except for their
// names.
func TestSymmetry(t *testing.T) {
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		strategy string
		events   []explore.Event
	}{
		{"none", nil}, {"conditional", nil}, {"setnx", []explore.Event{explore.Crash}}, {"redis", []explore.Event{explore.Expire}},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			entry := exploretest.Entry(t, c.strategy)
			config := exploretest.Config(e, entry)
			config.Buyers, config.Bound, config.Events = 3, 1, c.events
			if len(c.events) > 0 {
				config.Bound = 0
			}
			all := exploretest.Search(t, config)
			config.Symmetry = true
			symmetric := exploretest.Search(t, config)
			// With three buyers, each sequence of first steps occurs once and not six times.
			if !all.Complete || !symmetric.Complete || all.Explored != 6*symmetric.Explored {
				t.Errorf("explored %d (%v) and with symmetry %d (%v), want six times as many", all.Explored, all.Complete, symmetric.Explored, symmetric.Complete)
			}
			for v, n := range all.Verdicts {
				if n != 6*symmetric.Verdicts[v] {
					t.Errorf("%s: %d schedules, and with symmetry %d", v, n, symmetric.Verdicts[v])
				}
			}
		})
	}
}

// TestNodesAlike: it does not matter which node of a lock is asked first, except for the names.
// There are fewer schedules, with the same results.
func TestNodesAlike(t *testing.T) {
	tier.Test(t, "a search of three nodes, with and without the reduction")
	e := enginetest.Embedded(t)
	config := exploretest.Config(e, exploretest.Entry(t, "redlock"))
	config.Bound = 1
	alike := exploretest.Search(t, config)
	config.Full = true
	all := exploretest.Search(t, config)
	if !all.Complete || !alike.Complete || alike.Explored >= all.Explored {
		t.Errorf("explored %d (%t), and with nodes alike %d (%t)", all.Explored, all.Complete, alike.Explored, alike.Complete)
	}
	if ends := slices.Sorted(maps.Keys(all.Verdicts)); !slices.Equal(ends, slices.Sorted(maps.Keys(alike.Verdicts))) {
		t.Errorf("%v, and with nodes alike %v", all.Verdicts, alike.Verdicts)
	}
}

// TestWithin: a search that is cut short knows which bound it has completed.
func TestWithin(t *testing.T) {
	e := enginetest.Embedded(t)
	entry := exploretest.Entry(t, "none")
	c := exploretest.Config(e, entry)
	c.Bound = 1
	bounded, err := exploretest.Open(t, c).Search(t.Context())
	if err != nil || !bounded.Complete {
		t.Fatal(err, bounded)
	}
	c.Bound, c.Full, c.Schedules = -1, true, bounded.Explored+5
	cut := exploretest.Search(t, c)
	if cut.Complete || cut.Within != 1 || cut.ExploredWithin != bounded.Explored {
		t.Errorf("complete %v, all %d schedules of at most %d preemptions; want false, all %d of at most 1", cut.Complete, cut.ExploredWithin, cut.Within, bounded.Explored)
	}
	c.Schedules = 1
	early := exploretest.Search(t, c)
	if early.Within != -1 {
		t.Errorf("after one schedule all of at most %d preemptions", early.Within)
	}
}
