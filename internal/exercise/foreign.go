package exercise

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/exercises"
)

// notes are what a task's text lacks for a language.
const notes = "NOTES.md"

// foreignContent adds what Start writes for a program in another language.
func foreignContent(e exercises.Exercise, language string, all map[string]string) error {
	if _, ok := e.Languages[language]; !ok {
		there := append([]string{"go"}, slices.Sorted(maps.Keys(e.Languages))...)
		return fmt.Errorf("exercise %d is not there for %q; there is %s", e.Number, language, strings.Join(there, ", "))
	}
	shared, err := exercises.Shared(language)
	own, err2 := e.Files(language)
	code, err3 := e.Files(language + "/start")
	for _, files := range []map[string]string{shared, own, code} {
		maps.Copy(all, files)
	}
	all["README.md"] += all[notes]
	delete(all, notes)
	return errors.Join(err, err2, err3)
}
