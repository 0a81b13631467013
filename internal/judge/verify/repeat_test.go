package verify

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestMerge: a cell is as promised if every play is. Otherwise it shows a play that is not as promised.
func TestMerge(t *testing.T) {
	play := func(promise, seen verdict.Verdict) *Cell {
		c := &Cell{Strategy: "redis", Fault: "pause", Promise: promise, Verdict: seen, Acknowledged: 10, Evidence: "seen " + string(seen)}
		if seen == verdict.Lost {
			c.Lost = 1
		}
		c.Settle()
		return c
	}
	plays := func(promise verdict.Verdict, seen ...verdict.Verdict) (all []*Cell) {
		for _, v := range seen {
			all = append(all, play(promise, v))
		}
		return append(all, nil) // a job that was not played
	}
	for _, c := range []struct {
		name  string
		plays []*Cell
		want  verdict.Verdict
		ok    bool
	}{
		{"always as promised", plays(verdict.Holds, verdict.Holds, verdict.Holds), verdict.Holds, true},
		{"two words for one lost update", plays(verdict.Oversold, verdict.Oversold, verdict.Drifted), verdict.Oversold, true},
		{"one contradicts", plays(verdict.Holds, verdict.Holds, verdict.Inconclusive, verdict.Lost), verdict.Lost, false},
		{"one has shown nothing", plays(verdict.Holds, verdict.Holds, verdict.Inconclusive), verdict.Inconclusive, false},
		{"no promise", plays("", verdict.Holds, verdict.Oversold), verdict.Holds, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cells := merge(c.plays)
			if len(cells) != 1 {
				t.Fatalf("%d cells, want 1", len(cells))
			}
			got := cells[0]
			n := len(c.plays) - 1
			if got.Verdict != c.want || got.OK != c.ok || got.Acknowledged != int64(10*n) || !strings.Contains(got.Evidence, "seen "+string(c.want)) {
				t.Errorf("%+v, want %s, ok %t, of %d plays", got, c.want, c.ok, n)
			}
			if shown := (presented{&got}).field().Terminal(marks(false)); len(got.Verdicts) > 1 && !strings.Contains(shown, ", ") || !strings.Contains(shown, string(c.want)+" ") {
				t.Errorf("the matrix shows %q, want the counts", shown)
			}
			expect.Equal(t, got.Lost, int64(got.Verdicts[verdict.Lost]), "lost")
		})
	}
}
