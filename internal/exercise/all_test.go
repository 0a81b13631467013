package exercise

import (
	"maps"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/judge"
)

// crowded are the sources that a crowd judges; the others are judged by orders alone, since a
// crowd takes seconds, and what it shows of a sound lock the tests of the shop have shown.
var crowded = []string{"01-one-statement/solution", "01-one-statement/wrong/mutex", "02-lost-release/wrong/no-wait", "06-retry/solution"}

// TestSources: each reference passes, and each file to begin with and each wrong solution is
// judged by the words of its exercise. One program has them all.
func TestSources(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a judge and explores for minutes; make test has it")
	}
	all, err := exercises.All()
	if err != nil {
		t.Fatal(err)
	}
	var sources []source
	for _, e := range all {
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		reference := Module + "/exercises/" + e.Folder + "/solution"
		for _, what := range slices.Sorted(maps.Keys(e.Sources())) {
			name := e.Folder + "/" + what
			sources = append(sources, source{name, Module + "/exercises/" + name, reference})
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program, err := buildJudge(t.Context(), root, t.TempDir(), sources)
	if err != nil {
		t.Fatal(err)
	}
	side := make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) // a search takes one processor
	for _, e := range all {
		for _, what := range slices.Sorted(maps.Keys(e.Sources())) {
			words := e.Sources()[what]
			name := e.Folder + "/" + what
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				side <- struct{}{}
				defer func() { <-side }()
				j := judged{program: program, exercise: e, source: name, pkg: Module + "/exercises/" + name}
				r, err := j.orders(t.Context())
				if err == nil && r.Last().Verdict == judge.Passed && slices.Contains(crowded, name) {
					var c judge.Check
					c, _, _, err = j.crowds(t.Context())
					r.Checks = append(r.Checks, c)
				}
				if err != nil {
					t.Fatal(err)
				}
				judgedBy(t, r, words)
			})
		}
	}
}

// judgedBy compares a report with the words that it should have; "" for one that passes.
func judgedBy(t *testing.T, r judge.Report, words string) {
	t.Helper()
	last := r.Last()
	text := last.Name + ": " + last.Why
	for _, c := range r.Checks {
		t.Logf("%s: %s: %s", c.Verdict, c.Name, c.Why)
	}
	switch {
	case words == "" && last.Verdict != judge.Passed:
		t.Errorf("the reference is judged %s: %s\n%s\n%s", last.Verdict, text, last.Story, last.Diagram)
	case words != "" && last.Verdict != judge.Wrong:
		t.Errorf("judged %s: %s", last.Verdict, text)
	case words != "" && !regexp.MustCompile(words).MatchString(text):
		t.Errorf("judged by %q, and should be by %q\n%s", text, words, last.Story)
	case words == "" && (r.Trips < 1 || r.Trips != r.Theirs):
		t.Errorf("%.1f round trips a purchase, and %.1f of the same code", r.Trips, r.Theirs)
	case strings.Contains(last.Why, "\n"):
		t.Errorf("more than a line: %q", last.Why)
	}
	if last.Diagram != "" && last.Story == "" {
		t.Error("there is a diagram, and nothing in words")
	}
}
