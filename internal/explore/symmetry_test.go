package explore_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestSymmetry: buyers that have not started are interchangeable.
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
			// With three buyers, there are six times as many schedules without the symmetry reduction.
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

// TestNodesAlike: a lock's nodes without a command are interchangeable. The reduced search has the same results with fewer
// schedules.
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

// TestWithin: an incomplete search reports the number of preemptions up to which it is complete.
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

// TestOverlap: with concurrent pairs, the search finds the same violations, and none in correct strategies. The
// server decides the order of the two commands.
func TestOverlap(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, start func(t *testing.T) *engine.Engine) {
		e := start(t)
		for _, c := range []struct {
			strategy string
			broken   bool
			course   string // a possible result of the pair on MariaDB
		}{
			{"none", true, "waits"},
			{"transaction", true, "waits"},
			{"for-update", false, "waits"},
			{"conditional", false, "waits"},
			{"optimistic", false, "waits"},
			{"serializable", false, "Deadlock found"},
			{"redis", false, "unchanged"},
			{"redisson", false, "unchanged"},
		} {
			if e.DB.Name() != "mysql" && (c.strategy == "transaction" || c.strategy == "serializable") {
				continue // SQLite rejects them, and they retry in thousands of schedules
			}
			t.Run(c.strategy, func(t *testing.T) {
				if e.DB.Name() == dialect.SQLite && c.strategy != "none" && c.strategy != "for-update" {
					tier.Soak(t, "make test runs the searches on MariaDB, and two on SQLite")
				}
				entry := exploretest.Entry(t, c.strategy)
				config := exploretest.Config(e, entry)
				config.Overlap = true
				if c.strategy == "serializable" && !tier.Soaking() {
					config.Bound = 2 // enough for a deadlock; all schedules would take half a minute
				}
				result := exploretest.Search(t, config)
				if (result.Violations > 0) != c.broken {
					t.Fatalf("%d violations, want some: %v: %+v", result.Violations, c.broken, result.Witness)
				}
				if result.Foreign > 0 {
					t.Errorf("says that a buyer deletes the lock of another: %+v", result.ForeignWitness)
				}
				if result.Overlapped == 0 || result.Overlapped == result.Explored {
					t.Errorf("%d of %d schedules overlap", result.Overlapped, result.Explored)
				}
				if e.DB.Name() == "mysql" && !comesTo(result.Courses, c.course) {
					t.Errorf("no overlapped step comes to %q: %v", c.course, result.Courses)
				}
				report := explore.NewReport(config, result)
				if report.Total != nil || !strings.Contains(report.Extent(), "not all that can happen") {
					t.Errorf("claims too much: %s", report.Extent())
				}
			})
		}
	})
}

func comesTo(courses map[string]int, what string) bool {
	for course := range courses {
		if strings.Contains(course, what) {
			return true
		}
	}
	return false
}

// TestOverlapWitness: a replay string with a concurrent pair can be replayed, and the witness names both commands.
func TestOverlapWitness(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, start func(t *testing.T) *engine.Engine) {
		entry := exploretest.Entry(t, "none")
		x := exploretest.Open(t, exploretest.Config(start(t), entry))
		const line = "v1:none:b2:s1:1*2.2+1.2.1*2.2*3" // buyer 2 reads while buyer 1 writes
		w, err := x.Replay(t.Context(), line)
		require.NoError(t, err)
		if w.Schedule != line {
			t.Errorf("%s, want %s", w.Schedule, line)
		}
		notes := 0
		for _, s := range w.Steps {
			if strings.Contains(s.Note, "at once") || strings.Contains(s.Note, "before the other was answered") {
				notes++
			}
		}
		if notes != 2 || !w.Broken() {
			t.Errorf("%d steps overlap, %s: %+v", notes, w.Verdict, w.Steps)
		}
		for _, c := range []struct{ line, says string }{
			{"v1:none:b2:s1:1+1.2", "step 1 of the schedule is 1+1"},
			{"v1:none:b2:s1:1*5.1+2", "step 6 of the schedule is 1+2"},
			{"v1:none:b2:s1:1+", `"1+" is no step`},
		} {
			if _, err := x.Replay(t.Context(), c.line); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want something with %q", c.line, err, c.says)
			}
		}
	})
}
