// Package exercisetest returns the sources of the exercises for tests: the code that a learner starts from,
// the reference solution, and wrong answers.
//
// A wrong answer is a patch of one of the other two, in wrong/NAME.patch. Its first lines describe the
// mistake, and `git apply` applies the rest.
package exercisetest

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises"
)

// Sources maps each source of an exercise to the finding that the judge must report for it. The language "" is
// Go. The sources are "start", "solution" and every "wrong/NAME". The solution passes, so its finding is "".
func Sources(e exercises.Exercise, language string) map[string]string {
	start, wrong := e.Start, e.Wrong
	if language != "" {
		start, wrong = e.Languages[language].Start, e.Languages[language].Wrong
	}
	all := map[string]string{"start": start, "solution": ""}
	for name, words := range wrong {
		all["wrong/"+name] = words
	}
	return all
}

// base finds the folder that a patch changes, and the file in it.
var base = regexp.MustCompile(`(?m)^--- (start|solution)/(\S+)$`)

// Code returns the text of the file that the learner edits, as it is in one of the sources that Sources lists.
func Code(t testing.TB, e exercises.Exercise, language, source string) string {
	t.Helper()
	text := func(name string) string {
		code, err := e.Text(path.Join(language, name))
		if err != nil {
			t.Fatalf("%s: %v", e.Folder, err)
		}
		return code
	}
	file := e.LearnersFile(language)
	if path.Dir(source) != "wrong" {
		return text(source + "/" + file)
	}
	patch := text(source + ".patch")
	on := base.FindStringSubmatch(patch)
	if on == nil || on[2] != file {
		t.Fatalf("%s: %s.patch is on neither start/%s nor solution/%s", e.Folder, source, file, file)
	}
	dir := t.TempDir()
	patched := filepath.Join(dir, file)
	if err := os.WriteFile(patched, []byte(text(on[1]+"/"+file)), 0o644); err != nil {
		t.Fatal(err)
	}
	apply := exec.CommandContext(t.Context(), "git", "apply", "-")
	apply.Dir, apply.Stdin = dir, strings.NewReader(patch)
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // so that git does not find this repository
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s.patch does not apply to %s/%s any more: %s", e.Folder, source, on[1], file, out)
	}
	code, err := os.ReadFile(patched)
	if err != nil {
		t.Fatal(err)
	}
	return string(code)
}
