package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A ciRepository is a folder with the Python shop, and its oversell.yaml.
type ciRepository struct{ folder string }

// newRepository copies the example, with one of its files as oversell.yaml.
func newRepository(t *testing.T, mode string) ciRepository {
	t.Helper()
	example := appCase{file: "python/" + mode + ".yaml", needs: []string{"python3"}}.need(t)
	r := ciRepository{t.TempDir()}
	for from, to := range map[string]string{"shop.py": "shop.py", "../schema.sql": "schema.sql"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(example), from))
		if err != nil {
			t.Fatal(err)
		}
		r.write(t, to, string(text))
	}
	r.use(t, mode)
	return r
}

func (r ciRepository) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// use replaces oversell.yaml.
func (r ciRepository) use(t *testing.T, mode string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/python/" + mode + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, "oversell.yaml", strings.ReplaceAll(string(text), "../schema.sql", "schema.sql"))
}

// check runs shop ci in the folder.
func (r ciRepository) check(t *testing.T, env []string, args ...string) (code int, stdout, stderr string, _ result.Result) {
	t.Helper()
	cmd := plainCommand(t, append([]string{"ci"}, args...)...)
	cmd.Dir = r.folder
	cmd.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH"), "GITHUB_ACTIONS=", "GITLAB_CI=", "BUILDKITE=")
	cmd.Env = append(cmd.Env, env...)
	code, stdout, stderr = exitOfCommand(t, cmd)
	read, err := result.Read(filepath.Join(r.folder, "oversell-ci/result.json"))
	if err != nil {
		return code, stdout, stderr, result.Result{}
	}
	return code, stdout, stderr, *read
}

// keep copies the result out of the folder, for --baseline.
func (r ciRepository) keep(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.folder, "oversell-ci/result.json"))
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(kept, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return kept
}

// TestCI: a naive shop is red, and a fixed one is green. Against the baseline, a break is new or old, and
// a fix counts only after the old witness has run. An unchanged repository is not searched again.
func TestCI(t *testing.T) {
	t.Parallel()
	r := newRepository(t, "naive")
	code, stdout, stderr, red := r.check(t, nil)
	if code != exitBroken || red.Exit != code || len(red.Checks) != 1 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	c := red.Checks[0]
	if c.Name != "oversell.yaml" || c.Status != result.Broken || c.Verdict != verdict.Broken || c.Line != 15 || c.Schedules != 10 || c.Violations != 6 || !c.Complete || len(c.Attempts) != 1 || c.Change != "" {
		t.Errorf("%+v", c)
	}
	if w := c.Witness; !w.HasFile() || len(w.Rules) == 0 || w.Command != "shop explore --app oversell.yaml --replay oversell-ci/oversell.witness.json" {
		t.Fatalf("%+v", w)
	}
	for _, name := range []string{"result.json", "summary.md", "report.html", "junit.xml", "oversell.sarif", "oversell.witness.json"} {
		if text, err := os.ReadFile(filepath.Join(r.folder, "oversell-ci", name)); err != nil || len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := explore.LoadSaved(filepath.Join(r.folder, "oversell-ci/oversell.witness.json")); err != nil {
		t.Error(err)
	}
	replay := plainCommand(t, strings.Fields(c.Witness.Command)[1:]...)
	replay.Dir = r.folder
	if code, stdout, stderr := exitOfCommand(t, replay); code != exitBroken || !strings.Contains(stdout, "still breaks") {
		t.Errorf("the replay ends with %d: %s%s", code, stdout, stderr)
	}
	naive := r.keep(t)

	code, stdout, stderr, old := r.check(t, nil, "--baseline", naive)
	if code != 0 || len(old.Checks) != 1 || old.Checks[0].Change != result.Before || old.Checks[0].Status != result.Broken {
		t.Errorf("the same break: exit %d: %s%s", code, stdout, stderr)
	}

	r.use(t, "for-update")
	code, stdout, stderr, fixed := r.check(t, nil, "--baseline", naive, "--cache", "kept")
	if code != 0 || len(fixed.Checks) != 1 || fixed.Checks[0].Change != result.Fixed || fixed.Checks[0].Status != result.Holds {
		t.Errorf("the fix: exit %d: %s%s", code, stdout, stderr)
	}
	green := r.keep(t)
	code, stdout, stderr, again := r.check(t, nil, "--cache", "kept")
	if code != 0 || len(again.Checks) != 1 || again.Checks[0].Unchanged == nil || again.Checks[0].Schedules != fixed.Checks[0].Schedules || again.Checks[0].Change != "" {
		t.Errorf("unchanged: exit %d: %s%s", code, stdout, stderr)
	}
	if again.Seconds > 5 {
		t.Errorf("an unchanged repository takes %.1f s", again.Seconds)
	}

	r.use(t, "naive")
	code, stdout, stderr, broke := r.check(t, nil, "--baseline", green, "--cache", "kept")
	if code != exitBroken || len(broke.Checks) != 1 || broke.Checks[0].Change != result.New || broke.Checks[0].Unchanged != nil {
		t.Errorf("a new break: exit %d: %s%s", code, stdout, stderr)
	}
}

// TestCIWrong: each mistake is one line, and changes nothing.
func TestCIWrong(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("exploring a program needs Linux")
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "there is no oversell.yaml here; write one with shop init, or name yours with --app FILE"},
		{[]string{"--app", "no.yaml"}, "--app: there is no file no.yaml; write one with shop init"},
		{[]string{"--app", "services/*.yaml"}, "--app: there is no file services/*.yaml; write one with shop init"},
		{[]string{"--shard", "4/3"}, `--shard must be a part such as 1/3, from 1 to the number of parts (got "4/3")`},
		{[]string{"--strict"}, "--strict requires --baseline"},
		{[]string{"--strategy", "mine"}, "--strategy requires --target"},
		{[]string{"--budget", "0s"}, "--budget must be more than 0s (got 0s)"},
		{[]string{"--args", "expire"}, `--args takes only flags (got "expire")`},
		{[]string{"--target", "nowhere"}, `--target must be a URL such as http://host:port (got "nowhere")`},
	} {
		r := ciRepository{t.TempDir()}
		code, stdout, stderr, _ := r.check(t, nil, c.args...)
		if code != exitHarness || stderr != "shop: "+c.says+"\n" || stdout != "" {
			t.Errorf("%q: exit %d: %s%s", c.args, code, stdout, stderr)
		}
		if left, err := os.ReadDir(r.folder); err != nil || len(left) > 0 {
			t.Errorf("%q leaves %v, %v", c.args, left, err)
		}
	}
}
