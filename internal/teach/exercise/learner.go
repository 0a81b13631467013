package exercise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/oversell/oversell/exercises"
)

// yours is the name of the learner's code among a judge's sources.
const yours = "yours"

// Check judges the code in dir; language "" is Go. It calls the function `told` as each part begins. An error
// means bad input: compiler errors, or a folder without an exercise.
func Check(ctx context.Context, e exercises.Exercise, language, dir string, faults bool, told func(string)) (Result, error) {
	if language != "" {
		return checkProgram(ctx, e, language, dir, faults, told)
	}
	return checkCode(ctx, e, dir, faults, told)
}

// checkCode compiles Go code and judges it.
func checkCode(ctx context.Context, e exercises.Exercise, dir string, faults bool, told func(string)) (r Result, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return r, err
	}
	path, err := modulePath(dir)
	if err != nil {
		return r, err
	}
	temp, err := os.MkdirTemp("", "shop-exercise-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	told("compiling")
	program, err := buildJudge(ctx, dir, temp, []source{{Name: yours, Path: path, Reference: Module + "/exercises/" + e.Folder + "/solution"}})
	if err != nil {
		return r, err
	}
	j := judged{program: program, exercise: e, source: yours, pkg: path, dir: dir}
	if r, err = j.check(ctx, told); err != nil || !faults || !r.Passed() {
		return r, err
	}
	told("faults on private servers")
	return j.underFaults(ctx, r, told)
}

// Passed reports whether every check has passed.
func (r Result) Passed() bool { return r.Last().Verdict == "passed" }

func modulePath(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("%s has no go.mod; create the folder with: shop exercise start N DIR", dir)
	}
	for line := range strings.Lines(string(text)) {
		if path, found := strings.CutPrefix(line, "module "); found {
			return strings.Trim(strings.TrimSpace(path), "\""), nil
		}
	}
	return "", fmt.Errorf("%s names no module", filepath.Join(dir, "go.mod"))
}
