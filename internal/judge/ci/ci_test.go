package ci

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/require"
)

const yaml = `run: python3 shop.py
mysql: 127.0.0.1:3306
local: true
schema: schema.sql
buyer: POST http://127.0.0.1:8080/buy?item=1
reset:
  sql: [ "UPDATE items SET stock = 1" ]
never:
  - SELECT * FROM items WHERE stock < 0
`

func newJob(t *testing.T, text string) *appJob {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	inside := filepath.Join(folder, "services", "shop")
	require.NoError(t, os.MkdirAll(inside, 0o700))
	file := filepath.Join(inside, "oversell.yaml")
	write(t, file, text)
	write(t, filepath.Join(inside, "schema.sql"), "CREATE TABLE items (stock INT);")
	write(t, filepath.Join(inside, "shop.py"), "sell()")
	a, err := app.Load(file)
	require.NoError(t, err)
	return &appJob{Config{Root: folder, Out: filepath.Join(inside, "oversell-ci"), Cache: filepath.Join(inside, "kept"), Warn: t.Errorf}, App{Path: file, App: a}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// inGit creates a repository in the root of a job and commits everything.
func (j *appJob) inGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	write(t, filepath.Join(j.Root, ".gitignore"), "node_modules\n.env\n")
	j.commit(t, "init", "-q")
}

func (j *appJob) commit(t *testing.T, first ...string) {
	t.Helper()
	for _, args := range [][]string{first, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"}} {
		if len(args) == 0 {
			continue
		}
		if out, err := git(t.Context(), j.Root, args...); err != nil {
			t.Fatal(args, err, out)
		}
	}
}

// TestFingerprint: a fingerprint changes with each file that can decide the result, and with nothing else.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name    string
		do      func(t *testing.T, j *appJob)
		changes bool
		gitOnly bool
	}{
		{name: "nothing", do: func(*testing.T, *appJob) {}},
		{name: "the program", do: func(t *testing.T, j *appJob) { write(t, filepath.Join(j.app.App.Dir, "shop.py"), "sell(1)") }, changes: true},
		{name: "a commit of that", do: func(t *testing.T, j *appJob) { j.commit(t) }, changes: true, gitOnly: true},
		{name: "a new file", do: func(t *testing.T, j *appJob) { write(t, filepath.Join(j.app.App.Dir, "lib.py"), "x") }, changes: true},
		{name: "the new file", do: func(t *testing.T, j *appJob) { write(t, filepath.Join(j.app.App.Dir, "lib.py"), "y") }, changes: true},
		{name: "another folder", do: func(t *testing.T, j *appJob) { write(t, filepath.Join(j.Root, "lib", "lock.py"), "x") }, changes: true, gitOnly: true},
		{name: "the schema", do: func(t *testing.T, j *appJob) { write(t, filepath.Join(j.app.App.Dir, "schema.sql"), "x") }, changes: true},
		{name: "an ignored file", do: func(t *testing.T, j *appJob) { write(t, filepath.Join(j.Root, "node_modules", "x.js"), "x") }},
		{name: "a compiled file", do: func(t *testing.T, j *appJob) {
			write(t, filepath.Join(j.app.App.Dir, "__pycache__", "shop.pyc"), "x")
		}, gitOnly: false},
		{name: "the results", do: func(t *testing.T, j *appJob) {
			write(t, filepath.Join(j.Out, "result.json"), "x")
			write(t, filepath.Join(j.Out, "shop.witness.json"), "x")
			write(t, j.entryFile(strings.Repeat("0", 64)), "x")
		}},
		{name: "a file next to the results", do: func(t *testing.T, j *appJob) { write(t, filepath.Join(j.Out, "shop.py"), "x") }, changes: true},
		{name: "a deleted file", do: func(t *testing.T, j *appJob) {
			require.NoError(t, os.Remove(filepath.Join(j.app.App.Dir, "shop.py")))
		}, changes: true},
		{name: "the environment", do: func(t *testing.T, j *appJob) { write(t, filepath.Join(j.app.App.Dir, ".env"), "x") }, changes: true},
		{name: "the flags", do: func(_ *testing.T, j *appJob) { j.app.Flags = " --events expire" }, changes: true},
		{name: "the budget", do: func(_ *testing.T, j *appJob) { j.app.Search.Budget++ }, changes: true},
		{name: "the file", do: func(t *testing.T, j *appJob) { write(t, j.app.Path, yaml+"sold: 200\n") }, changes: true},
	}
	for _, inGit := range []bool{false, true} {
		t.Run(fmt.Sprintf("git %v", inGit), func(t *testing.T) {
			j := newJob(t, yaml)
			if inGit {
				j.inGit(t)
				write(t, filepath.Join(j.Root, ".git", "info", "exclude"), "__pycache__\n")
			}
			last := j.fingerprint(t.Context())
			for _, s := range steps {
				if s.gitOnly && !inGit {
					continue
				}
				s.do(t, j)
				now := j.fingerprint(t.Context())
				if now == "" || (now != last) != s.changes {
					t.Errorf("%s: from %.8s to %.8s, changes: %v", s.name, last, now, s.changes)
				}
				last = now
			}
		})
	}
}

// TestFingerprintPrograms: a fingerprint changes with the server and with the interpreter.
func TestFingerprintPrograms(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	j := newJob(t, yaml)
	last := j.fingerprint(t.Context())
	for _, name := range []string{"mariadbd", "python3"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("another version"), 0o700); err != nil { // #nosec G306: a program
			t.Fatal(err)
		}
		now := j.fingerprint(t.Context())
		if now == "" || now == last {
			t.Errorf("another %s: from %.8s to %.8s", name, last, now)
		}
		last = now
	}
}

// TestNoFingerprint: a result is never reused if something outside of the files decides it.
func TestNoFingerprint(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"running servers": strings.Replace(strings.Replace(yaml, "local: true\n", "", 1), "schema: schema.sql\n", "", 1),
		"another folder":  strings.Replace(yaml, "python3 shop.py", "python3 ../shop.py", 1),
		"a whole path":    strings.Replace(yaml, "python3 shop.py", "python3 /srv/shop.py", 1),
	} {
		expect.Equal(t, newJob(t, text).fingerprint(t.Context()), "", name)
	}
}

// TestKept: only a complete result that proves something is reused.
func TestKept(t *testing.T) {
	t.Parallel()
	j := newJob(t, yaml)
	good := result.Check{Name: j.name(), Fingerprint: "f", Status: result.Holds, Complete: true, Why: "it held", Change: result.New, Case: report.Case{Small: []string{"x"}}}
	for name, change := range map[string]func(*result.Check){
		"inconclusive": func(c *result.Check) { c.Status = result.Inconclusive },
		"incomplete":   func(c *result.Check) { c.Complete = false },
		"an error":     func(c *result.Check) { c.Status = result.Error },
		"no witness":   func(c *result.Check) { c.Status = result.Broken },
		"unknown":      func(c *result.Check) { c.Fingerprint = "" },
	} {
		c := good
		change(&c)
		j.keep(t.Context(), c)
		if got := j.kept("f", j); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	j.keep(t.Context(), good)
	got := j.kept("f", j)
	if got == nil || got.Why != "it held" || got.Unchanged == nil || got.Change != "" || !slices.Equal(got.Case.Small, []string{"x"}) {
		t.Fatalf("%+v", got)
	}
	if got := j.kept("g", j); got != nil {
		t.Errorf("another fingerprint: %+v", got)
	}
	write(t, j.entryFile("f"), "not JSON")
	if got := j.kept("f", j); got != nil {
		t.Errorf("a damaged file: %+v", got)
	}
}

// TestShard: each check is in exactly one shard.
func TestShard(t *testing.T) {
	t.Parallel()
	var all []job
	for n := range 7 {
		all = append(all, &fakeJob{called: fmt.Sprint(n)})
	}
	seen := map[string]int{}
	for i := 1; i <= 3; i++ {
		s, err := ParseShard(fmt.Sprintf("%d/3", i))
		require.NoError(t, err)
		part := s.of(all)
		if len(part) < 2 || len(part) > 3 {
			t.Errorf("%s has %d of 7", s, len(part))
		}
		for _, j := range part {
			seen[j.name()]++
		}
	}
	for _, j := range all {
		expect.Equal(t, seen[j.name()], 1, j.name(), "shards")
	}
	expect.Equal(t, len((Shard{}).of(all)), len(all), "without shards")
	for _, text := range []string{"", "1", "0/3", "4/3", "a/b", "1/3/5", "-1/3", "1/0"} {
		if s, err := ParseShard(text); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
}

// A fakeJob yields one check, with a given status for each attempt.
type fakeJob struct {
	called   string
	statuses []result.Status
}

func (j *fakeJob) name() string { return j.called }

func (j *fakeJob) run(context.Context) []result.Check {
	status := j.statuses[0]
	j.statuses = j.statuses[1:]
	return []result.Check{{Name: j.called, Status: status, Seconds: 1, Attempts: []result.Attempt{{Status: status}}}}
}

// TestAgain: an inconclusive check runs once more, after all others. The second attempt is the result.
func TestAgain(t *testing.T) {
	t.Parallel()
	const void, holds = result.Inconclusive, result.Holds
	var ended []string
	c := Config{Ended: func(c result.Check) { ended = append(ended, c.Name+" "+string(c.Status)) }}
	var r result.Result
	c.runAll(t.Context(), &r, []job{&fakeJob{"a", []result.Status{void, holds}}, &fakeJob{"b", []result.Status{void, void}}, &fakeJob{"c", []result.Status{holds}}}, nil)
	want := []string{"a inconclusive", "b inconclusive", "c holds", "a holds", "b inconclusive"}
	expect.DeepEqual(t, ended, want)
	for i, attempts := range []int{2, 2, 1} {
		if got := r.Checks[i]; len(got.Attempts) != attempts || got.Seconds != float64(attempts) {
			t.Errorf("%+v, want %d attempts", got, attempts)
		}
	}
	if r.Finish(); r.Exit != 3 {
		t.Errorf("exit %d", r.Exit)
	}
}

// TestSources: stack traces of several languages name the repository's own lines.
func TestSources(t *testing.T) {
	t.Parallel()
	j := newJob(t, yaml)
	for _, name := range []string{"server.mjs", "src/shop.php", "lib/shop.rb", "main.go", "node_modules/mysql2/lib.js", "a/Shop.java"} {
		write(t, filepath.Join(j.app.App.Dir, name), "x")
	}
	dir := j.app.App.Dir
	for log, want := range map[string]string{
		"    at buy (file://" + dir + "/server.mjs:42:7)\n    at async " + dir + "/node_modules/mysql2/lib.js:3:1": "services/shop/server.mjs:42",
		"  File \"" + dir + "/shop.py\", line 7, in sell\n  File \"/usr/lib/python3/x.py\", line 9":                "services/shop/shop.py:7",
		"it printed: File \"shop.py\", line 7 | File \"shop.py\", line 8 | File \"shop.py\", line 7":               "services/shop/shop.py:7 services/shop/shop.py:8",
		"PHP Fatal error: Uncaught x in " + dir + "/src/shop.php:12":                                               "services/shop/src/shop.php:12",
		"PHP Warning: x in " + dir + "/src/shop.php on line 13":                                                    "services/shop/src/shop.php:13",
		"\tfrom lib/shop.rb:5:in `sell'":                                                                           "services/shop/lib/shop.rb:5",
		"goroutine 1 [running]:\nmain.sell(...)\n\t" + dir + "/main.go:31 +0x1d":                                   "services/shop/main.go:31",
		"a/Shop.java:8 other.go:9 server.mjs:0 listening at 127.0.0.1:8080":                                        "services/shop/a/Shop.java:8",
		"": "",
	} {
		var got []string
		for _, s := range j.sources(log) {
			got = append(got, fmt.Sprintf("%s:%d", s.File, s.Line))
		}
		expect.Equal(t, strings.Join(got, " "), want, log)
	}
	if got := j.sources(strings.Repeat("é", 500) + " shop.py:1"); len(got) != 1 || len(got[0].Text) > mostText+3 {
		t.Errorf("%+v", got)
	}
}

// TestShow: a witness from another run gets the file and the command of this run.
func TestShow(t *testing.T) {
	t.Parallel()
	j := newJob(t, yaml)
	var c result.Check
	other := result.BreakingSchedule{Replay: "v1:x", File: "../../elsewhere", Command: "rm", Rules: []string{"SELECT * FROM items WHERE stock < 0"}, Saved: &explore.Saved{}}
	j.show(&c, other)
	if c.Witness.File != "services-shop-oversell.witness.json" || !strings.HasSuffix(c.Witness.Command, " --replay "+filepath.Join(j.Out, c.Witness.File)) || c.Line != 9 {
		t.Errorf("line %d, %+v", c.Line, c.Witness)
	}
	other.Saved = nil
	j.show(&c, other)
	if c.Witness.File != "" || !strings.HasSuffix(c.Witness.Command, " --replay 'v1:x'") {
		t.Errorf("without a file: %+v", c.Witness)
	}
	service := &targetJob{strategy: "a;b", fault: "none"}
	service.Target = &Target{Service: verify.Service{URL: "http://shop/?a=1&b=2"}}
	expect.Equal(t, service.command("a;b"), "shop verify --target 'http://shop/?a=1&b=2' --strategy 'a;b' --fault none")
}

// TestReplayOld: if the baseline's witness cannot run again, a check that holds proves no fix.
func TestReplayOld(t *testing.T) {
	t.Parallel()
	for says, w := range map[string]*result.BreakingSchedule{
		"the baseline has no saved witness":                    nil,
		"the broken rule is no longer in the file: SELECT old": {Rules: []string{"SELECT * FROM items WHERE stock < 0", "SELECT old"}, Saved: &explore.Saved{}},
		"the baseline's witness has no steps":                  {Rules: []string{"SELECT * FROM items WHERE stock < 0"}, Saved: &explore.Saved{}},
	} {
		j := newJob(t, yaml)
		old := result.Result{Schema: result.Schema, Checks: []result.Check{{Name: j.name(), Status: result.Broken, Witness: w}}}
		text, err := json.Marshal(old)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "main.json")
		write(t, file, string(text))
		j.Baseline = result.ReadBaseline([]string{file})
		c := result.Check{Name: j.name(), Status: result.Holds, Complete: true}
		replay := j.replayOld(t.Context(), &c, nil, nil)
		if replay.Holds || replay.How != says {
			t.Errorf("%+v; want %q", replay, says)
		}
		if j.Baseline.Compare(&c, replay); c.Change != result.Unproven {
			t.Errorf("%q: %s", says, c.Change)
		}
	}
}
