package verify

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/verdict"
)

// TestExplore: a break has a witness and the line that shows it again; that there
// is none says how far it went; an event that cannot come has shown nothing.
func TestExplore(t *testing.T) {
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		strategy string
		fault    promise.Condition
		promise  verdict.Verdict
		want     verdict.Verdict
		ok       bool
		says     string
		replay   string
	}{
		{"none", promise.Explore, verdict.Oversold, verdict.Oversold, true, "2 units sold of 1 stocked", "shop explore none --replay v1:"},
		{"none", promise.Explore, verdict.Holds, verdict.Oversold, false, "break", "--replay"},
		{"conditional", promise.Explore, verdict.Holds, verdict.Holds, true, "of", "shop explore conditional"},
		{"conditional", promise.ExploreCrash, verdict.Holds, verdict.Holds, true, "bound 1", "--events crash --bound 1"},
		{"conditional", promise.ExploreCrash, verdict.Oversold, verdict.Holds, false, "no order breaks", "--events crash"},
		{"redis", promise.ExploreExpire, verdict.Oversold, verdict.Oversold, true, "at most 1 preemption break", ".expire."},
		{"redlock", promise.ExploreExpire, verdict.Oversold, verdict.Oversold, true, "seen in schedule", ".expire."},
		{"setnx", promise.ExploreExpire, verdict.Holds, verdict.Inconclusive, false, "never came", "--events expire"},
	} {
		entry, _ := lockstrategy.ByName(c.strategy)
		cell, err := Explore(t.Context(), e, entry, c.fault, c.promise)
		if err != nil {
			t.Fatalf("%s under %s: %v", c.strategy, c.fault, err)
		}
		if cell.Verdict != c.want || cell.OK != c.ok || !strings.Contains(cell.Evidence, c.says) || !strings.Contains(cell.Replay, c.replay) {
			t.Errorf("%s under %s: %s, ok %t: %s; %s", c.strategy, c.fault, cell.Verdict, cell.OK, cell.Evidence, cell.Replay)
		}
		switch broken := c.want == verdict.Oversold; {
		case broken != (cell.Witness != nil):
			t.Errorf("%s under %s: witness %v", c.strategy, c.fault, cell.Witness)
		case broken && (cell.Audited.Oversold != 1 || !strings.Contains(cell.Witness.Mermaid, "sequenceDiagram") || !strings.Contains(cell.Witness.Text, "buyer 2")):
			t.Errorf("%s under %s: books %+v, witness %+v", c.strategy, c.fault, cell.Audited, cell.Witness)
		}
	}
}

// TestExplored: every strategy whose servers the explorer has gates for is
// explored, and an event is asked about wherever order alone is promised to hold
// and what it strikes is there.
func TestExplored(t *testing.T) {
	cells := map[promise.Condition]int{}
	for _, entry := range lockstrategy.All() {
		for _, f := range promise.Explorations() {
			promise, possible := entry.Explored(f, "sqlite")
			if !possible {
				continue
			}
			cells[f]++
			if promise == "" {
				t.Errorf("%s under %s: nothing is promised", entry.Name, f)
			}
		}
	}
	atLeast := map[promise.Condition]int{ // those of the catalogue when this was written: none may drop out
		promise.Explore: 24, promise.ExploreExpire: 10, promise.ExploreCrash: 21, promise.ExploreForget: 13,
	}
	for f, n := range atLeast {
		if cells[f] < n {
			t.Errorf("%d cells of %s, want %d or more", cells[f], f, n)
		}
	}
}
