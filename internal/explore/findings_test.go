package explore_test

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestRushVerdict: one broken round decides, then one failed round. A void or missing round makes the
// rush inconclusive.
func TestRushVerdict(t *testing.T) {
	holds, broken, void := target.Crowd{Verdict: verdict.Holds}, target.Crowd{Verdict: verdict.Broken, Why: "b"}, target.Crowd{Verdict: verdict.Inconclusive, Why: "v"}
	failed := target.Crowd{Verdict: verdict.Failed, Why: "f"}
	for _, c := range []struct {
		rounds []target.Crowd
		want   verdict.Verdict
		why    string
	}{
		{[]target.Crowd{holds, holds, holds}, verdict.Holds, ""},
		{[]target.Crowd{holds, holds}, verdict.Inconclusive, ""},
		{nil, verdict.Inconclusive, ""},
		{[]target.Crowd{holds, void, void}, verdict.Inconclusive, "round 2: v"},
		{[]target.Crowd{void, broken, broken}, verdict.Broken, "round 2: b"},
		{[]target.Crowd{broken}, verdict.Broken, "round 1: b"},
		{[]target.Crowd{void, failed, holds}, verdict.Failed, "round 2: f"},
		{[]target.Crowd{failed, broken, failed}, verdict.Broken, "round 2: b"},
	} {
		if r := findings.NewRush(2, 3, c.rounds, 0); r.Verdict != c.want || r.Why != c.why {
			t.Errorf("%v: %s (%s), want %s (%s)", c.rounds, r.Verdict, r.Why, c.want, c.why)
		}
	}
}
