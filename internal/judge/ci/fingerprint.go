package ci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/oversell/oversell/internal/judge/ci/format"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// fingerprint returns a hash of everything that decides the result of a search: the repository, the file, the
// flags, this program, its servers and interpreters, and the image of the CI runner. Files that git ignores do
// not count, except .env. The result is "" if the program or its servers are already running, since no file
// describes their state. It is also "" for a scan, which has several results.
func (j *appJob) fingerprint(ctx context.Context) string {
	a := j.app.App
	if a.Attach != nil || !a.Local || j.app.Scan {
		return ""
	}
	content, err := j.content(ctx)
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(j.app.Path)
	if err != nil {
		return ""
	}
	shop, err := executable()
	if err != nil {
		return ""
	}
	h := sha256.New()
	settings, err := hashFile(filepath.Join(a.Dir, ".env"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	for _, part := range []string{
		fmt.Sprint(result.Schema), j.Shop, shop, runtime.GOOS + "/" + runtime.GOARCH, os.Getenv("ImageVersion"), // GitHub's runners set ImageVersion
		j.name(), j.app.Flags, j.app.Search.Budget.String(), string(text), settings, content, j.programs(),
	} {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// executable returns a hash of this program's file, since two builds may have the same version.
var executable = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return hashFile(path)
})

// programs returns the hashes of the servers that the search starts. It adds the programs in PATH that the
// command lines name, such as an interpreter. It omits servers that are not installed yet.
func (j *appJob) programs() string {
	a := j.app.App
	var paths []string
	for _, kind := range j.servers() {
		path, err := localserver.Program(kind)
		if err != nil {
			path = ""
		}
		paths = append(paths, path)
	}
	for _, line := range append(slices.Clone(a.Run), a.Shared, a.Migrate) {
		for word := range strings.FieldsSeq(line) {
			if path, err := exec.LookPath(strings.Trim(word, `"'`)); err == nil && !strings.Contains(word, "/") {
				paths = append(paths, path)
			}
		}
	}
	var all strings.Builder
	for _, path := range paths {
		hash, err := hashFile(path)
		if err != nil {
			hash = "missing"
		}
		fmt.Fprintln(&all, hash)
	}
	return all.String()
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func git(ctx context.Context, folder string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = folder
	out, err := cmd.Output()
	return string(out), err
}

// head returns the commit of a repository; "" outside git.
func head(ctx context.Context, root string) string {
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(commit)
}

// content returns a text that changes with the files of the program. In git these are the files of the whole
// repository, since the program may be built from any of its folders. Otherwise they are the schema and the
// files below the folder of the YAML file.
func (j *appJob) content(ctx context.Context) (string, error) {
	tree, err := git(ctx, j.app.App.Dir, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return j.folder()
	}
	top, err := git(ctx, j.app.App.Dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	top = strings.TrimSpace(top)
	changed, err := git(ctx, top, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
	if err != nil {
		return "", err
	}
	content := strings.TrimSpace(tree)
	for entry := range strings.SplitSeq(changed, "\x00") {
		if len(entry) < 4 || j.writes(filepath.Join(top, entry[3:])) {
			continue
		}
		hash, err := hashFile(filepath.Join(top, entry[3:]))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			hash = "deleted"
		case err != nil: // for example, the entry is a submodule with changes
			return "", err
		}
		content += "\n" + entry[3:] + " " + hash
	}
	return content, nil
}

// writes reports whether a path is a file that this command writes.
func (c Config) writes(path string) bool {
	name := filepath.Base(path)
	return isIn(c.Out, path) && format.Writes(name) || isIn(c.Cache, path) && entryName.MatchString(name)
}

func isIn(folder, path string) bool {
	whole, err := filepath.Abs(folder)
	if folder == "" || err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(whole); err == nil {
		whole = real
	}
	return filepath.Dir(path) == whole
}

// passed lists folders that git and Python write. Their files do not decide the result of a search.
var passed = []string{".git", "__pycache__"}

// folder returns the hashes of the files below the folder of the YAML file.
func (j *appJob) folder() (string, error) {
	a := j.app.App
	for _, line := range append(slices.Clone(a.Run), a.Shared) {
		if strings.Contains(line, "..") || strings.Contains(line, " /") || strings.HasPrefix(line, "/") {
			return "", fmt.Errorf("%q may use files outside of %s", line, a.Dir)
		}
	}
	var content strings.Builder
	err := filepath.WalkDir(a.Dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(passed, e.Name()):
			return fs.SkipDir
		case !e.Type().IsRegular() || j.writes(path):
			return nil
		}
		return hashed(&content, path)
	})
	if err == nil && a.Schema != "" {
		path := a.Schema
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.Dir, path)
		}
		err = hashed(&content, path)
	}
	return content.String(), err
}

func hashed(content *strings.Builder, path string) error {
	hash, err := hashFile(path)
	if err == nil {
		fmt.Fprintf(content, "%s %s\n", path, hash)
	}
	return err
}
