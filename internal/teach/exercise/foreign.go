package exercise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/internal/nearest"
)

// notes is the file with the part of a task that is specific to one programming language.
const notes = "NOTES.md"

// Solution returns the files of the reference solution, by name, in a programming language such as "go".
func Solution(e exercises.Exercise, language string) (map[string]string, error) {
	switch {
	case language == "go":
		return e.Files("solution")
	case !slices.Contains(e.LanguageNames(), language):
		return nil, notIn(e, language)
	}
	return e.Files(language + "/solution")
}

// notIn returns the error for a language in which an exercise is unavailable.
func notIn(e exercises.Exercise, language string) error {
	there := append([]string{"go"}, e.LanguageNames()...)
	return nearest.Unknown(fmt.Sprintf("language of exercise %d", e.Number), language, there, "")
}

// elsewhere is a note for learners in another language, before a task that uses Go's names.
const elsewhere = "\n> The last section says what stands for `shop.go` and its kit in this language.\n"

const modules = "node_modules"

// linkModules links the installed modules of examples/node into dir, if the folder of this program's sources
// has them. `make workshop` installs them there, so no network is needed. linkModules returns the names of
// the links.
func linkModules(ctx context.Context, dir string) []string {
	folder, _, err := Sources(ctx)
	if err != nil || folder == "" {
		return nil
	}
	installed := filepath.Join(folder, "examples", "node", modules)
	if _, err := os.Stat(installed); err != nil {
		return nil
	}
	if os.Symlink(installed, filepath.Join(dir, modules)) != nil {
		return nil // without the modules, the check tells the learner to run npm install
	}
	return []string{modules}
}

// startReference copies the exercise to dir, with the reference solution instead of the file that the learner
// edits. It uses the servers and modules of the folder `learner`, in which the learner solves the exercise.
func startReference(ctx context.Context, e exercises.Exercise, dir, language, learner string) error {
	if _, err := Start(ctx, e, dir, language); err != nil {
		return err
	}
	all, err := e.Files(language + "/solution")
	described, err2 := os.ReadFile(filepath.Join(learner, AppFile))
	installed, err3 := filepath.Abs(filepath.Join(learner, modules))
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	all[AppFile] = string(described)
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if _, err := os.Stat(installed); err == nil {
		_ = os.Symlink(installed, filepath.Join(dir, modules)) // fails if Start has linked modules already
	}
	return nil
}

func foreignContent(e exercises.Exercise, language string, all map[string]string) error {
	if _, ok := e.Languages[language]; !ok {
		return notIn(e, language)
	}
	shared, err := exercises.Shared(language)
	own, err2 := e.Files(language)
	code, err3 := e.Files(language + "/start")
	for _, files := range []map[string]string{shared, own, code} {
		maps.Copy(all, files)
	}
	title, text, _ := strings.Cut(all["README.md"], "\n")
	all["README.md"] = title + "\n" + elsewhere + text + all[notes]
	delete(all, notes)
	return errors.Join(err, err2, err3)
}
