package exercises_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises"
)

// TestComplete: each folder is in the list, and each exercise has all that it needs. What its
// sources are judged by is TestSources in internal/teach/exercise.
func TestComplete(t *testing.T) {
	all, err := exercises.All()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && strings.ContainsAny(entry.Name()[:1], "0123456789") && !slices.ContainsFunc(all, func(e exercises.Exercise) bool { return e.Folder == entry.Name() }) {
			t.Errorf("%s is in no list", entry.Name())
		}
	}
	if len(all) < 10 {
		t.Errorf("%d exercises", len(all))
	}
	programs := 0
	for _, e := range all {
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		programs += len(e.Languages)
		task, err := e.Text("README.md")
		if err != nil || !strings.HasPrefix(task, "# ") || !strings.Contains(task, e.Title) {
			t.Errorf("%s: the task is not headed by its title, %q: %v", e.Folder, e.Title, err)
		}
	}
	if programs != 2*4 {
		t.Errorf("%d exercises for programs in other languages", programs)
	}
}

// TestCheckMisses: an exercise that lacks something is told so.
func TestCheckMisses(t *testing.T) {
	whole, err := exercises.Find("one-statement")
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(e *exercises.Exercise){
		"a hint":     func(e *exercises.Exercise) { e.Hints = e.Hints[:2] },
		"a folder":   func(e *exercises.Exercise) { e.Wrong = map[string]string{"nowhere": "x"} },
		"words":      func(e *exercises.Exercise) { e.Start = "" },
		"bad words":  func(e *exercises.Exercise) { e.Start = "(" },
		"a search":   func(e *exercises.Exercise) { e.Searches = nil },
		"a reason":   func(e *exercises.Exercise) { e.Why = "" },
		"a language": func(e *exercises.Exercise) { e.Languages = map[string]exercises.Language{"python": {File: "none.py"}} },
	} {
		e := whole
		spoil(&e)
		if e.Check() == nil {
			t.Errorf("%s is missing, and nobody says so", name)
		}
	}
}
