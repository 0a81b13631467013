package exercise

import (
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/witness"
)

// TestProgramWhy: a finding about stock and records uses the words of the exercises in Go. Any
// other finding uses the words of the query.
func TestProgramWhy(t *testing.T) {
	const query, broken = "SELECT what FROM wrong", ", by a query that must return no row, and does: SELECT what FROM wrong -> it"
	for _, c := range []struct {
		stock, records string
		want           string
	}{
		{"0", "2", "oversold: 2 units sold of 1 stocked" + broken},
		{"-1", "2", "oversold: 2 units sold of 1 stocked" + broken},
		{"1", "1", "drifted: 1 update of the stock was lost" + broken},
		{"0", "0", "leaked: 1 unit left the stock and was not sold" + broken},
		{"0", "1", "broken: must return no row, and does: SELECT what FROM wrong -> it"},
		{"NULL", "1", "broken: must return no row, and does: SELECT what FROM wrong -> it"},
	} {
		w := &explore.Witness{
			Program: "exercise", Verdict: "broken", Watch: []string{"stock", "records"}, Steps: []explore.Step{{Watched: []string{c.stock, c.records}}},
			Findings: []witness.Finding{{Query: query, Columns: []string{"what"}, Rows: [][]string{{"it"}}}},
		}
		if got := programWhy(w, 1); got != c.want {
			t.Errorf("stock %s, records %s: %q, want %q", c.stock, c.records, got, c.want)
		}
	}
	if got := programWhy(&explore.Witness{Verdict: "stalled", Why: "nobody goes on"}, 1); got != "stalled: nobody goes on" {
		t.Errorf("without a step: %q", got)
	}
}
