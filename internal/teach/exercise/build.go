package exercise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Module is the path of this project's module.
const Module = "github.com/oversell/oversell"

// A source is code (the learner's or the reference) that is linked into a judge, the program that tests it.
type source struct {
	Name      string
	Path      string // import path
	New       string // name of the function of type judge.New; "": New
	Reference string // import path of the code to compare with; "": none
}

// judgeFolder is the folder of the judge's main package. It exists only in an overlay of the go command (flag
// -overlay). The go command also uses copies of go.mod and go.sum, so nothing is written to the learner's
// folder.
const judgeFolder = "oversell-judge"

// An ownError is the compiler's error in the learner's code.
type ownError struct{ text string }

func (e *ownError) Error() string { return e.text }

// buildJudge compiles a program that judges the sources. The folder dir is part of their module, and all
// output goes to the folder temp.
func buildJudge(ctx context.Context, dir, temp string, sources []source) (program string, _ error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errors.New("go is not in PATH; install it from https://go.dev/dl")
	}
	main := filepath.Join(temp, "main.go")
	if err := os.WriteFile(main, []byte(mainOf(sources)), 0o600); err != nil {
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(temp, name), text, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	at := filepath.Join(dir, judgeFolder, "main.go")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{at: main}})
	if err == nil {
		err = os.WriteFile(filepath.Join(temp, overlayFile), text, 0o600)
	}
	if err != nil {
		return "", err
	}
	program = filepath.Join(temp, "judge")
	out, err := goCommand(ctx, dir, temp, "build", "-buildvcs=false", "-o", program, "./"+judgeFolder).CombinedOutput()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", &ownError{compiler(string(out), err)}
	}
	return program, nil
}

const overlayFile = "overlay.json"

// goCommand runs the go command in dir with the overlay and the go.mod in temp. It uses no network: the module
// cache contains all modules with which this program was built.
func goCommand(ctx context.Context, dir, temp, verb string, args ...string) *exec.Cmd {
	flags := []string{verb, "-overlay", filepath.Join(temp, overlayFile), "-modfile", filepath.Join(temp, "go.mod")}
	c := exec.CommandContext(ctx, "go", append(flags, args...)...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-mod=mod")
	return c
}

func mainOf(sources []source) string {
	var imports, entries strings.Builder
	paths := map[string]string{}
	add := func(name, path, function string) {
		if paths[path] == "" {
			paths[path] = fmt.Sprintf("code%d", len(paths))
			fmt.Fprintf(&imports, "\t%s %q\n", paths[path], path)
		}
		fmt.Fprintf(&entries, "\t\t%q: %s.%s,\n", name, paths[path], cmp.Or(function, "New"))
	}
	for _, s := range sources {
		add(s.Name, s.Path, s.New)
		if s.Reference != "" {
			add(s.Name+" reference", s.Reference, "")
		}
	}
	return fmt.Sprintf("package main\n\nimport (\n\t%q\n%s)\n\nfunc main() {\n\tjudge.Main(map[string]judge.New{\n%s\t})\n}\n", Module+"/exercises/judge", &imports, &entries)
}

// mostLines limits the lines of compiler output that are shown.
const mostLines = 12

// compiler returns a failed build's message for a learner: the compiler's own lines about the
// learner's own files.
func compiler(out string, err error) string {
	var lines []string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "", strings.HasPrefix(line, "# "), importer.MatchString(line):
		case entry.MatchString(line):
			return "New is missing, or is another function: func New(kit kata.Kit) kata.Strategy"
		case ours.MatchString(line): // the line is about the judge's imports
			lines = append(lines, ours.ReplaceAllString(line, ""))
		default:
			lines = append(lines, strings.TrimPrefix(line, "./"))
		}
	}
	if len(lines) == 0 {
		lines = []string{err.Error()}
	}
	if more := len(lines) - mostLines; more > 0 {
		lines = append(lines[:mostLines], fmt.Sprintf("and %d more lines", more))
	}
	return strings.Join(lines, "\n")
}

// importer, entry and ours match the compiler's messages about the judge's main package.
var (
	importer = regexp.MustCompile(`^package \S*` + judgeFolder + `$`)
	entry    = regexp.MustCompile(`\bcode\d+\.New\b`)
	ours     = regexp.MustCompile(`^\t?(imports \S+: )?\S*(shop-exercise-\d+|` + judgeFolder + `)/main\.go:\d+:\d+: `)
)

// Sources returns the folder with the sources of this program. If the program was built from a published
// version, `folder` is "", and `version` is that version.
func Sources(ctx context.Context) (folder, version string, _ error) {
	if built := builtFrom(); isModule(built) {
		return built, "", nil
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", Module)
	list.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
	if out, err := list.Output(); err == nil && isModule(strings.TrimSpace(string(out))) {
		return strings.TrimSpace(string(out)), "", nil
	}
	if build, ok := debug.ReadBuildInfo(); ok && published.MatchString(build.Main.Version) && build.Main.Path == Module {
		return "", build.Main.Version, nil
	}
	return "", "", errors.New("cannot find the source code of shop, which exercises need; run it in a checkout of the project, or install a published version")
}

// builtFrom returns the folder that held the module when this file was compiled, or "" if the compiler did
// not record it (-trimpath).
func builtFrom() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "..") // the folder of this file is internal/teach/exercise
}

// published matches a version that a module proxy serves.
var published = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func isModule(folder string) bool {
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	return err == nil && folder != "" && strings.HasPrefix(string(text), "module "+Module+"\n")
}
