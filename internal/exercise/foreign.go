package exercise

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/exercises"
)

// foreignContent adds what Start writes for a program in another language.
func foreignContent(e exercises.Exercise, language string, all map[string]string) error {
	if _, ok := e.Languages[language]; !ok {
		there := append([]string{"go"}, slices.Sorted(maps.Keys(e.Languages))...)
		return fmt.Errorf("exercise %d is not there for %q; there is %s", e.Number, language, strings.Join(there, ", "))
	}
	code, err := e.Files(language + "/start")
	if err != nil {
		return err
	}
	common, err := e.Files(language)
	maps.Copy(all, common)
	maps.Copy(all, code)
	return err
}
