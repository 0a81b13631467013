package retry

import (
	"fmt"
	"strings"
	"testing"
)

// TestRepetition: only commands that repeat without a change are a loop, however many they are.
func TestRepetition(t *testing.T) {
	read, taken := Step{1, "GET a", "1"}, Step{1, "SET lock", "nil"}
	for _, c := range []struct {
		name string
		next func(n int) (s Step, changed bool)
		says string // "": no loop within maxSteps
	}{
		{"one command", func(int) (Step, bool) { return read, false }, `it sends "GET a" again and again`},
		{"two commands", func(n int) (Step, bool) { return []Step{read, taken}[n%2], false }, `it sends the same 2 commands again and again, beginning with "`},
		{"a turn of 50", func(n int) (Step, bool) { return Step{1, fmt.Sprint("GET ", n%50), ""}, false }, "it sends the same 50 commands"},
		{"a turn of 51", func(n int) (Step, bool) { return Step{1, fmt.Sprint("GET ", n%51), ""}, false }, ""},
		{"other commands", func(n int) (Step, bool) { return Step{1, fmt.Sprint("GET ", n), ""}, false }, ""},
		{"other answers", func(n int) (Step, bool) { return Step{1, "GET a", fmt.Sprint(n)}, false }, ""},
		{"commands that change", func(int) (Step, bool) { return Step{1, "INCR a", "1"}, true }, ""},
		{"a change in each turn", func(n int) (Step, bool) { return read, n%100 == 0 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Loop
			steps := 0
			for ; steps < MaxSteps && !r.Endless(); steps++ {
				r.Add(c.next(steps))
			}
			if r.Endless() != (c.says != "") || !strings.HasPrefix(r.String(), c.says) {
				t.Errorf("after %d steps: %v: %s; want %q", steps, r.Endless(), &r, c.says)
			}
			if c.says != "" && (steps < loopProof || steps > loopProof+longestLoop) {
				t.Errorf("recognized after %d steps, want %d to %d", steps, loopProof, loopProof+longestLoop)
			}
		})
	}
}

// TestStepLimit: the limit grows with what the buyers send, within its bounds.
func TestStepLimit(t *testing.T) {
	for alone, want := range map[int]int{3: 200, 50: 200, 224: 896, 5000: MaxSteps} {
		if got := StepLimit(alone); got != want {
			t.Errorf("%d commands: %d steps, want %d", alone, got, want)
		}
	}
}
