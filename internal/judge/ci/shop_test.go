package ci_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// A ciRepository is a folder with the Python shop, and its oversell.yaml.
type ciRepository struct{ folder string }

// newRepository copies the example, with one of its files as oversell.yaml.
func newRepository(t *testing.T, mode string) ciRepository {
	t.Helper()
	example := shoptest.Example(t, "python/"+mode+".yaml")
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := ciRepository{folder}
	for from, to := range map[string]string{"shop.py": "shop.py", "../schema.sql": "schema.sql"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(example), from))
		require.NoError(t, err)
		// For each sale, print a stack trace, as a real shop does for an error.
		r.write(t, to, strings.Replace(string(text), "    return True\n", "    __import__('traceback').print_stack(limit=1)\n    return True\n", 1))
	}
	r.use(t, mode)
	return r
}

func (r ciRepository) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(r.folder, name), []byte(text), 0o600))
}

func (r ciRepository) use(t *testing.T, mode string) {
	t.Helper()
	text, err := os.ReadFile("../../../examples/python/" + mode + ".yaml")
	require.NoError(t, err)
	r.write(t, "oversell.yaml", strings.ReplaceAll(string(text), "../schema.sql", "schema.sql"))
}

func (r ciRepository) check(t *testing.T, env []string, args ...string) (code int, stdout, stderr string, _ result.Result) {
	t.Helper()
	cmd := shoptest.Command(t, append([]string{"ci"}, args...)...)
	cmd.Dir = r.folder
	cmd.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH"), "GITHUB_ACTIONS=", "GITLAB_CI=", "BUILDKITE=")
	cmd.Env = append(cmd.Env, env...)
	code, stdout, stderr = shoptest.Exit(t, cmd)
	read, err := result.Read(filepath.Join(r.folder, "oversell-ci/result.json"))
	if err != nil {
		return code, stdout, stderr, result.Result{}
	}
	return code, stdout, stderr, *read
}

func (r ciRepository) keep(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.folder, "oversell-ci/result.json"))
	require.NoError(t, err)
	kept := filepath.Join(t.TempDir(), "result.json")
	require.NoError(t, os.WriteFile(kept, text, 0o600))
	return kept
}

// TestCI: a naive shop fails, and a fixed one passes. Against the baseline, a break is new or old, and a fix
// counts only after the old witness has run. An unchanged repository is not searched again.
func TestCI(t *testing.T) {
	t.Parallel()
	r := newRepository(t, "naive")
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	runner := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(runner, "event.json"), []byte(`{"pull_request": {"number": 7}}`), 0o600))
	code, stdout, stderr, red := r.check(t, []string{
		"GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + filepath.Dir(r.folder), "GITHUB_STEP_SUMMARY=" + runner + "/summary", "GITHUB_OUTPUT=" + runner + "/output",
		"GITHUB_EVENT_PATH=" + runner + "/event.json", "GITHUB_REPOSITORY=o/r", "GITHUB_TOKEN=secret", "GITHUB_API_URL=" + refusing.URL,
	})
	if code != shoptest.Broken || red.Exit != code || len(red.Checks) != 1 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	folder := filepath.Base(r.folder)
	c := red.Checks[0]
	if c.Name != folder+"/oversell.yaml" || c.Status != result.Broken || c.Verdict != verdict.Broken || c.Line != 15 || c.Schedules != 10 || c.Violations != 6 || !c.Complete || len(c.Attempts) != 1 || c.Change != "" {
		t.Errorf("%+v", c)
	}
	for _, start := range []string{
		"::error file=" + folder + "/oversell.yaml,line=15,title=" + folder + "/oversell.yaml%3A broken::must return no row, and does: ",
		"::error file=" + folder + "/shop.py,line=84,title=" + folder + "/oversell.yaml%3A broken::The program's log names this line: File \"",
	} {
		expect.Contains(t, stdout, "\n"+start)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "shop: GitHub: no comment: the token may not write one") {
		t.Errorf("without permission to comment it says %q", stderr)
	}
	summary, err := os.ReadFile(runner + "/summary")
	if err != nil || !strings.HasPrefix(string(summary), "# shop ci: 1 broken\n") {
		t.Errorf("%s, %v", summary, err)
	}
	if outputs, err := os.ReadFile(runner + "/output"); err != nil || string(outputs) != "exit=1\nheadline=1 broken\nfolder=oversell-ci\n" {
		t.Errorf("%s, %v", outputs, err)
	}
	if w := c.Witness; !w.HasFile() || len(w.Rules) == 0 || w.Command != "shop explore --app oversell.yaml --replay oversell-ci/"+folder+"-oversell.witness.json" {
		t.Fatalf("%+v", w)
	}
	for _, name := range []string{"result.json", "summary.md", "report.html", "junit.xml", "oversell.sarif", c.Witness.File} {
		if text, err := os.ReadFile(filepath.Join(r.folder, "oversell-ci", name)); err != nil || len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	expect.NoError(t, expect.ErrorOf(explore.LoadSaved(filepath.Join(r.folder, "oversell-ci", c.Witness.File))))
	replay := shoptest.Command(t, strings.Fields(c.Witness.Command)[1:]...)
	replay.Dir = r.folder
	if code, stdout, stderr := shoptest.Exit(t, replay); code != shoptest.Broken || !strings.Contains(stdout, "still breaks") {
		t.Errorf("the replay ends with %d: %s%s", code, stdout, stderr)
	}
	naive := r.keep(t)

	env := []string{"GITLAB_CI=true", "CI_PROJECT_DIR=" + filepath.Dir(r.folder)} // gives the check the same name as before
	r.use(t, "for-update")
	code, stdout, stderr, fixed := r.check(t, env, "--baseline", naive, "--cache", "kept")
	if code != 0 || len(fixed.Checks) != 1 || fixed.Checks[0].Change != result.Fixed || fixed.Checks[0].Status != result.Holds {
		t.Errorf("the fix: exit %d: %s%s", code, stdout, stderr)
	}
	green := r.keep(t)
	if code, stdout, stderr, _ := r.check(t, env, "--needs", "--cache", "kept"); code != 0 || stdout != "" {
		t.Errorf("--needs of an unchanged repository: exit %d: %q%s", code, stdout, stderr)
	}
	code, stdout, stderr, again := r.check(t, env, "--cache", "kept")
	if code != 0 || len(again.Checks) != 1 || again.Checks[0].Unchanged == nil || again.Checks[0].Schedules != fixed.Checks[0].Schedules || again.Checks[0].Change != "" {
		t.Errorf("unchanged: exit %d: %s%s", code, stdout, stderr)
	}
	if again.Seconds > 5 && tier.Soaking() { // make test shares its cores with other tests
		t.Errorf("an unchanged repository takes %.1f s", again.Seconds)
	}

	code, stdout, stderr, void := r.check(t, env, "--baseline", naive, "--args", "--max-schedules 3")
	if code != shoptest.Inconclusive || len(void.Checks) != 1 || void.Checks[0].Change != result.Unproven || void.Checks[0].Status != result.Inconclusive || len(void.Checks[0].Attempts) != 2 || void.Checks[0].Fingerprint == again.Checks[0].Fingerprint {
		t.Errorf("an incomplete search: exit %d: %s%s", code, stdout, stderr)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "shop: "+c.Name+": inconclusive: nothing was found, but the search is incomplete") {
		t.Errorf("an incomplete search says %q", stderr)
	}

	r.use(t, "naive")
	code, stdout, stderr, broke := r.check(t, env, "--baseline", green, "--cache", "kept")
	if code != shoptest.Broken || len(broke.Checks) != 1 || broke.Checks[0].Change != result.New || broke.Checks[0].Unchanged != nil {
		t.Errorf("a new break: exit %d: %s%s", code, stdout, stderr)
	}
}

// TestCIOtherCommands: a program has new commands, and its search ends before it finds the break. The
// baseline's witness shows the break.
func TestCIOtherCommands(t *testing.T) {
	tier.Soak(t, "searches a program with commands that the baseline lacks")
	t.Parallel()
	r := newRepository(t, "naive")
	if code, stdout, stderr, _ := r.check(t, nil); code != shoptest.Broken {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	baseline := r.keep(t)
	text, err := os.ReadFile(filepath.Join(r.folder, "shop.py"))
	require.NoError(t, err)
	r.write(t, "shop.py", strings.Replace(string(text), "SELECT stock FROM", "SELECT stock, id FROM", 1))
	code, stdout, stderr, broke := r.check(t, nil, "--baseline", baseline, "--strict", "--args", "--max-schedules 1")
	if code != shoptest.Broken || len(broke.Checks) != 1 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	c := broke.Checks[0]
	if c.Change != result.Before || c.Violations != 0 || !strings.HasPrefix(c.Why, "the baseline's witness with the new commands breaks: ") || !c.Witness.HasFile() || !strings.Contains(fmt.Sprint(c.Witness.Steps), "stock, id") {
		t.Errorf("%+v", c)
	}
}

// TestCINeeds: --needs prints the servers of the programs, each once, and does nothing else.
func TestCINeeds(t *testing.T) {
	t.Parallel()
	r := newRepository(t, "naive")
	r.use(t, "redis-lock")
	text, err := os.ReadFile(filepath.Join(r.folder, "oversell.yaml"))
	require.NoError(t, err)
	r.write(t, "running.yaml", strings.NewReplacer("local: true\n", "", "schema: schema.sql\n", "").Replace(string(text)))
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "mysql\nredis\n"},
		{[]string{"--app", "*.yaml"}, "mysql\nredis\n"},
		{[]string{"--app", "running.yaml"}, ""},
	} {
		if code, stdout, stderr, _ := r.check(t, nil, append(c.args, "--needs")...); code != 0 || stdout != c.want {
			t.Errorf("%q: exit %d: %q, want %q\n%s", c.args, code, stdout, c.want, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(r.folder, "oversell-ci")); err == nil {
		t.Error("--needs writes a folder")
	}
}

// TestCIWithoutNamespaces: if no program can be searched, one line says what to do, and the result is written.
func TestCIWithoutNamespaces(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-U", "-r", "sh", "-c", "echo 0 > /proc/sys/user/max_net_namespaces").CombinedOutput(); err != nil {
		t.Skipf("user namespaces are not allowed here, or unshare(1) is not there: %v: %s", err, out)
	}
	r := newRepository(t, "naive")
	inside := shoptest.Command(t, "ci")
	cmd := exec.Command("unshare", append([]string{"-U", "-r", "sh", "-c", `echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"`, "sh"}, inside.Args...)...)
	cmd.Dir = r.folder
	code, stdout, stderr := shoptest.Exit(t, cmd)
	if code != shoptest.Harness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "a program needs a network of its own") || !strings.Contains(stderr, "run it as root") && !strings.Contains(stderr, "--privileged") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if read, err := result.Read(filepath.Join(r.folder, "oversell-ci/result.json")); err != nil || read.Exit != code || len(read.With(result.Error)) != 1 {
		t.Errorf("%+v, %v", read, err)
	}
}
