package explore_test

import "testing"

// TestJudgedFirst: a buyer that sends much after the change that matters is preempted before that
// change first.
func TestJudgedFirst(t *testing.T) {
	buyer := []command{{"read", "a", "x"}, {"add", "a", "x"}}
	for range 20 {
		buyer = append(buyer, command{"write", "a", "y"})
	}
	runs := map[string]int{}
	for _, judged := range []string{"", "x"} {
		l := &little{judged: judged, buyers: [][][]command{{buyer}, {buyer}}, wrong: func(w *world) string {
			if w.answers[1][0] == w.answers[2][0] {
				return "both have read the same"
			}
			return ""
		}}
		c := littleConfig(l)
		c.First, c.Reduce = true, true
		r := searchLittle(t, c, l)
		if r.Violations != 1 {
			t.Fatalf("%q: %d of %d runs break", judged, r.Violations, r.Runs)
		}
		runs[judged] = r.Runs
	}
	if runs["x"] > 3 || runs[""] < 20 {
		t.Errorf("%d runs until a schedule breaks, and %d if no rule judges; want at most 3, and at least 20", runs["x"], runs[""])
	}
}
