package exercise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oversell/oversell/exercises"
)

// AppFile is the file that describes a learner's program that is not written in Go, as for `shop explore
// --app`.
const AppFile = "app.yaml"

// marker is the file that identifies the folder of an exercise.
const marker = "exercise.txt"

// Start copies an exercise to dir, which must be empty or not exist. The parameter `language` is ""
// for Go. Start returns the names of the files.
func Start(ctx context.Context, e exercises.Exercise, dir, language string) (written []string, _ error) {
	all, err := content(ctx, e, language)
	if err != nil {
		return nil, err
	}
	if err := emptied(dir); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(all[name]), 0o644); err != nil {
			return nil, fmt.Errorf("cannot write to %s: %w", dir, errors.Unwrap(err))
		}
		written = append(written, name)
	}
	if _, ok := all["package.json"]; ok {
		written = append(written, linkModules(ctx, dir)...)
	}
	return written, nil
}

// content returns the files that Start writes, by name.
func content(ctx context.Context, e exercises.Exercise, language string) (map[string]string, error) {
	task, err := e.Text("README.md")
	if err != nil {
		return nil, err
	}
	all := map[string]string{"README.md": task, marker: e.Folder + "\n"}
	if language != "" && language != "go" {
		return all, foreignContent(e, language, all)
	}
	folder, version, err := Sources(ctx)
	if err != nil {
		return nil, err
	}
	code, err := e.Files("start")
	if err != nil {
		return nil, err
	}
	maps.Copy(all, code)
	all["go.mod"], all["go.sum"], err = moduleOf(e, folder, version)
	return all, err
}

// moduleOf returns the learner's go.mod and go.sum. They require only this project and its dependencies. The
// module cache with which this program was built contains them, so no network is needed.
func moduleOf(e exercises.Exercise, folder, version string) (mod, sum string, _ error) {
	if version != "" {
		return fmt.Sprintf("module %s\n\ngo 1.26\n\nrequire %s %s\n", learnerModule(e), Module, version), "", nil
	}
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", "", err
	}
	sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil {
		return "", "", err
	}
	var requires strings.Builder
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "require ("):
			inside = true
		case strings.HasPrefix(line, ")"):
			inside = false
		case inside:
			requires.WriteString(line)
		case strings.HasPrefix(line, "go "):
			mod = line
		}
	}
	return fmt.Sprintf("module %s\n\n%s\nrequire %s v0.0.0\n\nreplace %s => %s\n\n// What the shop requires, so that its module cache is enough.\nrequire (\n%s)\n",
		learnerModule(e), mod, Module, Module, strconv.Quote(filepath.ToSlash(folder)), &requires), string(sums), nil
}

func learnerModule(e exercises.Exercise) string { return "learner.example/" + e.Name() }

// emptied creates the folder, and returns an error unless it is empty.
func emptied(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cannot create %s: %w", dir, errors.Unwrap(err))
		}
	case err != nil:
		return fmt.Errorf("cannot read folder %s; choose another one", dir)
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty; choose a new folder", dir)
	}
	f, err := os.CreateTemp(dir, ".exercise-")
	if err != nil {
		return fmt.Errorf("cannot write to %s; choose another folder", dir)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// In returns the exercise to which a learner's folder belongs, and its language; "" is Go. The error names
// the missing part in one line.
func In(ctx context.Context, dir string) (e exercises.Exercise, language string, _ error) {
	text, err := os.ReadFile(filepath.Join(dir, marker))
	if err != nil {
		return e, "", fmt.Errorf("%s has no %s, so it is not an exercise; create one with: shop exercise start N DIR", dir, marker)
	}
	if e, err = exercises.Find(strings.TrimSpace(string(text))); err != nil {
		return e, "", fmt.Errorf("%s: %w", filepath.Join(dir, marker), err)
	}
	for name, l := range e.Languages {
		if _, err := os.Stat(filepath.Join(dir, l.File)); err == nil {
			return e, name, nil
		}
	}
	return e, "", checkFolder(ctx, e, dir)
}
