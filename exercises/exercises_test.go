package exercises_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/exercise/exercisetest"
)

// lacks says what is missing in an exercise, or returns nil.
func lacks(e exercises.Exercise) error {
	for _, language := range append([]string{""}, e.LanguageNames()...) {
		sources := exercisetest.Sources(e, language)
		for what, words := range sources {
			file := what + ".patch"
			if !strings.HasPrefix(what, "wrong/") {
				file = what + "/" + e.LearnersFile(language)
			}
			if code, err := e.Text(strings.TrimPrefix(language+"/"+file, "/")); err != nil || code == "" {
				return fmt.Errorf("%s has no %s/%s: %v", e.Folder, language, file, err)
			}
			if _, err := regexp.Compile(words); err != nil {
				return fmt.Errorf("%s: the words of %s: %w", e.Folder, what, err)
			}
			if what != "solution" && words == "" {
				return fmt.Errorf("%s: %s has no words to be judged by", e.Folder, what)
			}
		}
		if n := len(sources) - len([]string{"start", "solution"}); n < 3 {
			return fmt.Errorf("%s %s has %d wrong answers, want 3", e.Folder, language, n)
		}
	}
	switch {
	case e.Title == "" || e.Minutes < 1 || e.Why == "":
		return fmt.Errorf("%s: title, minutes and why are needed", e.Folder)
	case len(e.Hints) != 3:
		return fmt.Errorf("%s has %d hints, want 3", e.Folder, len(e.Hints))
	case len(e.Searches) == 0:
		return fmt.Errorf("%s has no search", e.Folder)
	}
	return nil
}

// TestComplete checks that each numbered folder is an exercise with all its files. TestJudged in
// internal/teach/exercise judges the sources.
func TestComplete(t *testing.T) {
	all, err := exercises.All()
	require.NoError(t, err)
	folders, err := filepath.Glob("[0-9][0-9]-*")
	if err != nil || len(folders) != len(all) || len(all) < 10 {
		t.Errorf("%d exercises in %d folders: %v", len(all), len(folders), err)
	}
	programs := 0
	for _, e := range all {
		expect.NoError(t, lacks(e))
		programs += len(e.Languages)
		if number, _, _ := strings.Cut(e.Folder, "-"); number != fmt.Sprintf("%02d", e.Number) {
			t.Errorf("%s is exercise %d", e.Folder, e.Number)
		}
		task, err := e.Text("README.md")
		if err != nil || !strings.HasPrefix(task, "# ") || !strings.Contains(task, e.Title) {
			t.Errorf("%s: the task is not headed by its title, %q: %v", e.Folder, e.Title, err)
		}
	}
	expect.Equal(t, programs, 2*4, "exercises for programs in other languages")
}

// TestLacks: lacks finds each missing part.
func TestLacks(t *testing.T) {
	whole, err := exercises.Find("one-statement")
	require.NoError(t, err)
	for name, spoil := range map[string]func(e *exercises.Exercise){
		"a hint": func(e *exercises.Exercise) { e.Hints = e.Hints[:2] },
		"a patch": func(e *exercises.Exercise) {
			e.Wrong = map[string]string{"nowhere": "x", "mutex": "x", "no-condition": "x"}
		},
		"wrong ones": func(e *exercises.Exercise) { e.Wrong = map[string]string{"mutex": "x"} },
		"words":      func(e *exercises.Exercise) { e.Start = "" },
		"bad words":  func(e *exercises.Exercise) { e.Start = "(" },
		"a search":   func(e *exercises.Exercise) { e.Searches = nil },
		"a reason":   func(e *exercises.Exercise) { e.Why = "" },
		"a language": func(e *exercises.Exercise) { e.Languages = map[string]exercises.Language{"python": {File: "none.py"}} },
	} {
		e := whole
		spoil(&e)
		if lacks(e) == nil {
			t.Errorf("%s is missing, and lacks does not say so", name)
		}
	}
}
