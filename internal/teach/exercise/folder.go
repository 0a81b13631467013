package exercise

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/internal/judge/trial"
)

// checkFolder returns an error of one line about the parts missing from the folder of a learner who writes Go.
func checkFolder(ctx context.Context, e exercises.Exercise, dir string) error {
	missing := e.LearnersFile("")
	if _, err := os.Stat(filepath.Join(dir, AppFile)); err == nil {
		var files []string
		for _, l := range e.Languages {
			files = append(files, l.File)
		}
		slices.Sort(files)
		missing = strings.Join(files, " and no ")
	} else if code, err := fs.Glob(os.DirFS(dir), "*.go"); err == nil && len(code) > 0 { // the learner may have renamed the file
		return checkReplaced(ctx, dir)
	}
	return fmt.Errorf("%s has no %s, which the check needs; restore it, or start again with: shop exercise start %d DIR", dir, missing, e.Number)
}

// checkReplaced checks that the sources named in the learner's go.mod exist.
func checkReplaced(ctx context.Context, dir string) error {
	file := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil // the caller's later check reports this error
	}
	for line := range strings.Lines(string(text)) {
		folder, found := strings.CutPrefix(strings.TrimSpace(line), "replace "+Module+" => ")
		if !found {
			continue
		}
		if plain, err := strconv.Unquote(folder); err == nil {
			folder = plain
		}
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return nil
		}
		lost := fmt.Sprintf("%s is compiled with the clone of oversell in %s, and that is not there any more", dir, folder)
		if now, _, err := Sources(ctx); err == nil && now != "" {
			return fmt.Errorf("%s; with the one in %s: go mod edit -replace %s %s", lost, now, trial.ShellWord(Module+"="+now), trial.ShellWord(file))
		}
		return fmt.Errorf("%s: put it back, or call the check in another clone of oversell", lost)
	}
	return nil
}
