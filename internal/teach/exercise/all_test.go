package exercise

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/judge"
)

// crowded are the sources that a crowd judges; the others are judged by orders alone, since a
// crowd takes seconds, and what it shows of a sound lock the tests of the shop have shown.
var crowded = []string{"01-one-statement/solution", "02-lost-release/wrong/no-wait", "06-retry/solution"}

// bad is code that no exercise asks for, and what is said of it. All but one are tried as
// answers to the first exercise.
var bad = map[string]string{
	"panics":        `buyer-1: panic: assignment to entry in nil map, at shop\.go:18$`,
	"panics-beside": `^the code runs: panic: assignment to entry in nil map, at shop\.go:20$`,
	"endless":       `buyer-1, alone, does not come back, and nobody else is there: it is at shop\.go:\d+ \((run|sleep)`,
	"stays":         `a goroutine that the code has begun does not end when its buyers have gone: it is at shop\.go:18 \(select`,
	"restocks":      `more is changed than the order asks for|and then 3 are left`,
	"deletes":       `more is changed than the order asks for: record 1 .* is gone`,
	"columns":       `more is changed than the order asks for: the fence of apricot was 0 and is 77; the fence of nobody's was 0 and is 77$`,
	"tables":        `more is changed than the order asks for: the table mine is new$`,
	"keys":          `more is changed than the order asks for: the key lock:nobody's in Redis is gone$`,
	"elsewhere":     `and then 3 are left`,
	"exits":         `^the code runs: the code ends the whole process, where Buy should return$`,
	"claims":        `and then 3 are left`,
	"hides":         `every order .*: the buyers wait for each other in memory that a second process does not have`,
	"fills":         `^the code runs: fatal error: runtime: (out of memory|cannot allocate memory), at shop\.go:20$`,
	"spins":         `tries again and again and comes to no end`,
}

var (
	tempDir  string
	building sync.Once
	built    string
	notBuilt error
)

func TestMain(m *testing.M) {
	var err error
	if tempDir, err = os.MkdirTemp("", "exercise-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(tempDir)
	os.Exit(code)
}

// program has every source of every exercise, and the bad ones: it is built once.
func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles a judge and explores for minutes; make test has it")
	}
	building.Do(func() {
		all, err := exercises.All()
		if err != nil {
			notBuilt = err
			return
		}
		var sources []source
		for _, e := range all {
			reference := Module + "/exercises/" + e.Folder + "/solution"
			for _, what := range slices.Sorted(maps.Keys(e.Sources())) {
				name := e.Folder + "/" + what
				sources = append(sources, source{name, Module + "/exercises/" + name, reference})
			}
		}
		for name := range bad {
			sources = append(sources, source{name, Module + "/internal/teach/exercise/testdata/bad/" + name, ""})
		}
		root, err := filepath.Abs("../../..")
		if err != nil {
			notBuilt = err
			return
		}
		built, notBuilt = buildJudge(context.Background(), root, tempDir, sources)
	})
	if notBuilt != nil {
		t.Fatal(notBuilt)
	}
	return built
}

// atOnce is how many judges run side by side: a search takes one processor, and other packages are tested meanwhile.
var atOnce = make(chan struct{}, min(2, runtime.GOMAXPROCS(0)))

// judgeOf runs the checks of one source.
func judgeOf(t *testing.T, j judged, crowd bool) judge.Report {
	t.Helper()
	atOnce <- struct{}{}
	defer func() { <-atOnce }()
	r, err := j.orders(t.Context())
	if err == nil && crowd && (r.Last().Verdict == judge.Passed || r.Last().Verdict == judge.Unsure) {
		var c judge.Check
		c, _, _, err = j.crowds(t.Context())
		whole := Result{Report: r}
		whole.add(c)
		r = whole.Report
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSources: each reference passes, and each file to begin with and each wrong solution is
// judged by the words of its exercise. One program has them all.
func TestSources(t *testing.T) {
	program := program(t)
	all, err := exercises.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		for _, what := range slices.Sorted(maps.Keys(e.Sources())) {
			words := e.Sources()[what]
			name := e.Folder + "/" + what
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				judgedBy(t, judgeOf(t, judged{program, e, name, Module + "/exercises/" + name, filepath.Join("../../../exercises", name)}, slices.Contains(crowded, name)), words)
			})
		}
	}
}

// TestBadCode: code that panics, never ends, or writes elsewhere is told so, in one line, and
// nothing hangs.
func TestBadCode(t *testing.T) {
	program := program(t)
	for name, words := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := exercises.Find("1")
			if err != nil {
				t.Fatal(err)
			}
			judgedBy(t, judgeOf(t, judged{program, e, name, Module + "/internal/teach/exercise/testdata/bad/" + name, filepath.Join("testdata/bad", name)}, false), words)
		})
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
