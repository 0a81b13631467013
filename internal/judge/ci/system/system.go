// Package system shows the result of `shop ci` in the user interface of each CI system. Each system is one
// file here and one line in Systems.
package system

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/oversell/oversell/internal/judge/ci/result"
)

// A System is a CI system.
type System struct {
	Name    string
	Present func(env Env) bool // reports whether this process runs in the system
	Root    func(env Env) string
	Publish func(ctx context.Context, p Publication) []error // the returned list may contain nil
}

// Systems returns the CI systems that can show results. Users of other systems, such as Jenkins, read the files.
func Systems() []System {
	return []System{
		gitHub(),
		gitLab(),
		buildkite(),
	}
}

// Env returns the value of an environment variable, or "".
type Env func(name string) string

// A Publication is a result for a system to show, and the environment of the job.
type Publication struct {
	Env     Env
	Log     io.Writer // the job's log
	Folder  string    // the folder with the result files
	Summary string    // the content of summary.md
	Result  result.Result
}

// Publish shows the result in every system that is present. The caller writes the errors to the job's log;
// they do not change the verdict.
func Publish(ctx context.Context, p Publication) (errs []error) {
	for _, s := range Systems() {
		if !s.Present(p.Env) {
			continue
		}
		for _, err := range s.Publish(ctx, p) {
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
			}
		}
	}
	return errs
}

// Root returns the folder of the repository, to which file names are relative. If the current folder is inside
// the folder that the CI system names, Root returns the named folder. Otherwise it returns the closest folder
// with .git, or else the current folder.
func Root(env Env) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if here, err = filepath.EvalSymlinks(here); err != nil {
		return "", err
	}
	for _, s := range Systems() {
		if !s.Present(env) {
			continue
		}
		if root, err := filepath.EvalSymlinks(s.Root(env)); err == nil && (here == root || strings.HasPrefix(here, root+string(filepath.Separator))) {
			return root, nil
		}
	}
	for folder := here; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return here, nil
		}
	}
}

// cut shortens Markdown to `most` bytes, at the end of a line. It closes an open block of code, and adds the
// note that more was left out.
func cut(text string, most int, note string) string {
	if len(text) <= most {
		return text
	}
	end := "\n```\n"
	kept := text[:max(0, most-len(end)-len(note))]
	kept = kept[:max(0, strings.LastIndexByte(kept, '\n')+1)]
	if strings.Count("\n"+kept, "\n```")%2 == 1 {
		kept += end[1:]
	}
	return kept + note
}
