package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/tier"
)

// A ciRepository is a folder with the Python shop, and its oversell.yaml.
type ciRepository struct{ folder string }

// newRepository copies the example, with one of its files as oversell.yaml.
func newRepository(t *testing.T, mode string) ciRepository {
	t.Helper()
	example := appCase{file: "python/" + mode + ".yaml", needs: []string{"python3"}}.need(t)
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := ciRepository{folder}
	for from, to := range map[string]string{"shop.py": "shop.py", "../schema.sql": "schema.sql"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(example), from))
		if err != nil {
			t.Fatal(err)
		}
		// For each sale, print a stack trace, as a real shop does for an error.
		r.write(t, to, strings.Replace(string(text), "    return True\n", "    __import__('traceback').print_stack(limit=1)\n    return True\n", 1))
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
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	runner := t.TempDir()
	if err := os.WriteFile(filepath.Join(runner, "event.json"), []byte(`{"pull_request": {"number": 7}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr, red := r.check(t, []string{
		"GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + filepath.Dir(r.folder), "GITHUB_STEP_SUMMARY=" + runner + "/summary", "GITHUB_OUTPUT=" + runner + "/output",
		"GITHUB_EVENT_PATH=" + runner + "/event.json", "GITHUB_REPOSITORY=o/r", "GITHUB_TOKEN=secret", "GITHUB_API_URL=" + refusing.URL,
	})
	if code != exitBroken || red.Exit != code || len(red.Checks) != 1 {
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
		if !strings.Contains(stdout, "\n"+start) {
			t.Errorf("no line %s in:\n%s", start, stdout)
		}
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
	if _, err := explore.LoadSaved(filepath.Join(r.folder, "oversell-ci", c.Witness.File)); err != nil {
		t.Error(err)
	}
	replay := plainCommand(t, strings.Fields(c.Witness.Command)[1:]...)
	replay.Dir = r.folder
	if code, stdout, stderr := exitOfCommand(t, replay); code != exitBroken || !strings.Contains(stdout, "still breaks") {
		t.Errorf("the replay ends with %d: %s%s", code, stdout, stderr)
	}
	naive := r.keep(t)

	env := []string{"GITLAB_CI=true", "CI_PROJECT_DIR=" + filepath.Dir(r.folder)} // names the check as before
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
	if code != exitInconclusive || len(void.Checks) != 1 || void.Checks[0].Change != result.Unproven || void.Checks[0].Status != result.Inconclusive || len(void.Checks[0].Attempts) != 2 || void.Checks[0].Fingerprint == again.Checks[0].Fingerprint {
		t.Errorf("an incomplete search: exit %d: %s%s", code, stdout, stderr)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "shop: "+c.Name+": inconclusive: nothing was found, but the search is incomplete") {
		t.Errorf("an incomplete search says %q", stderr)
	}

	r.use(t, "naive")
	code, stdout, stderr, broke := r.check(t, env, "--baseline", green, "--cache", "kept")
	if code != exitBroken || len(broke.Checks) != 1 || broke.Checks[0].Change != result.New || broke.Checks[0].Unchanged != nil {
		t.Errorf("a new break: exit %d: %s%s", code, stdout, stderr)
	}
}

// TestCIOtherCommands: the search ends before it finds the break of a program with new commands, and the
// baseline's witness shows it.
func TestCIOtherCommands(t *testing.T) {
	tier.Soak(t, "no other test has it: a baseline's witness with new commands")
	t.Parallel()
	r := newRepository(t, "naive")
	if code, stdout, stderr, _ := r.check(t, nil); code != exitBroken {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	baseline := r.keep(t)
	text, err := os.ReadFile(filepath.Join(r.folder, "shop.py"))
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, "shop.py", strings.Replace(string(text), "SELECT stock FROM", "SELECT stock, id FROM", 1))
	code, stdout, stderr, broke := r.check(t, nil, "--baseline", baseline, "--strict", "--args", "--max-schedules 1")
	if code != exitBroken || len(broke.Checks) != 1 {
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
	if err != nil {
		t.Fatal(err)
	}
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

// TestCIFlags: the flags in the command that repeats a check are those of --args, also in a shell.
func TestCIFlags(t *testing.T) {
	more := moreFlags()
	if err := more.parse("--events expire,restart --yes-this-database-may-be-wiped [::1]:3306 --full --product a;b"); err != nil {
		t.Fatal(err)
	}
	if got, want := more.given(more.ofApp), " --events 'expire,restart' --full --yes-this-database-may-be-wiped '[::1]:3306'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := more.given(more.ofTarget), " --product 'a;b'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCITarget: a running service, with a promise kept, a promise broken, and a check that proves nothing
// once or twice. An interrupted run says so in its result.
func TestCITarget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second *service
		interrupt     bool
		code          int
		attempts      []result.Status
	}{
		{"sound", &service{}, nil, false, 0, []result.Status{result.Holds}},
		{"broken", &service{ignoresKey: true}, nil, false, exitBroken, []result.Status{result.Broken}},
		{"twice nothing", &service{busyKey: true}, nil, false, exitInconclusive, []result.Status{result.Inconclusive, result.Inconclusive}},
		{"once nothing", &service{busyKey: true}, &service{}, false, 0, []result.Status{result.Inconclusive, result.Holds}},
		{"once nothing, then broken", &service{busyKey: true}, &service{ignoresKey: true}, false, exitBroken, []result.Status{result.Inconclusive, result.Broken}},
		{"interrupted", &service{}, nil, true, exitInterrupted, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var attempts atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				shop := c.first
				if n := attempts.Load(); n > 1 && c.second != nil {
					shop = c.second
				}
				switch r.URL.Path {
				case "/strategies": // each attempt asks for them once
					attempts.Add(1)
				case "/product/buy":
					if c.interrupt {
						interrupt()
					}
				}
				shop.ServeHTTP(w, r)
			}))
			defer server.Close()
			out := t.TempDir()
			var stdout, stderr bytes.Buffer
			code := run(ctx, []string{"ci", "--target", server.URL, "--strategy", "mine", "--args", "--fault duplicates", "--out", out}, &stdout, &stderr)
			r, err := result.Read(filepath.Join(out, "result.json"))
			if err != nil || code != c.code {
				t.Fatalf("exit %d, %v: %s%s", code, err, &stdout, &stderr)
			}
			if c.interrupt {
				if r.OK || r.Unfinished == "" || len(r.With(result.Holds)) > 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			if len(r.Checks) != 1 || r.Checks[0].Name != "mine under duplicates" || r.Checks[0].Kind != result.Verify {
				t.Fatalf("%+v", r.Checks)
			}
			var got []result.Status
			for _, a := range r.Checks[0].Attempts {
				got = append(got, a.Status)
			}
			if !slices.Equal(got, c.attempts) || r.Checks[0].Status != got[len(got)-1] {
				t.Errorf("%q, want %q: %s", got, c.attempts, r.Checks[0].Why)
			}
		})
	}
}

// TestCIBaselineIgnored: with a baseline of another version, every break counts as new, and a line says
// so.
func TestCIBaselineIgnored(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&service{ignoresKey: true})
	defer server.Close()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.json"), []byte(`{"schema": 99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{"main.json": "has schema 99, and this program reads schema 1", "none.json": "no such file or directory"} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"ci", "--target", server.URL, "--strategy", "mine", "--args", "--fault duplicates", "--out", filepath.Join(folder, "out"), "--baseline", filepath.Join(folder, file)}, &stdout, &stderr)
		if code != exitBroken || strings.Count(stderr.String(), "\n") != 1 || !strings.HasPrefix(stderr.String(), "shop: --baseline is not used: ") || !strings.HasSuffix(stderr.String(), says+"; every break counts as new\n") {
			t.Errorf("%s: exit %d: %s%s", file, code, &stdout, &stderr)
		}
	}
}

// TestCIWithoutNamespaces: where no program can be searched, one line says what to do, and the result is
// written.
func TestCIWithoutNamespaces(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-U", "-r", "sh", "-c", "echo 0 > /proc/sys/user/max_net_namespaces").CombinedOutput(); err != nil {
		t.Skipf("user namespaces are not allowed here, or unshare(1) is not there: %v: %s", err, out)
	}
	r := newRepository(t, "naive")
	inside := plainCommand(t, "ci")
	cmd := exec.Command("unshare", append([]string{"-U", "-r", "sh", "-c", `echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"`, "sh"}, inside.Args...)...)
	cmd.Dir = r.folder
	code, stdout, stderr := exitOfCommand(t, cmd)
	if code != exitHarness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "a program needs a network of its own") || !strings.Contains(stderr, "run it as root") && !strings.Contains(stderr, "--privileged") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if read, err := result.Read(filepath.Join(r.folder, "oversell-ci/result.json")); err != nil || read.Exit != code || len(read.With(result.Error)) != 1 {
		t.Errorf("%+v, %v", read, err)
	}
}
