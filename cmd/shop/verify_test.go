package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestVerifyQuick runs the command of a CI job on every push. Each strategy on the embedded engine is
// explored, and all cells are as promised. Each violation has its witness in the reports that show
// evidence, and the Markdown page names it. make soak also sends the bursts, as TestConformance does.
func TestVerifyQuick(t *testing.T) {
	tier.Test(t, "a search of the whole catalogue")
	t.Parallel()
	files, wanted := map[string]string{}, map[string]bool{}
	args := []string{"verify", "--fault", "explore"}
	if tier.Soaking() {
		args = []string{"verify", "--quick"}
	}
	for _, e := range lockstrategy.All() {
		long := e.Name == "bucketed" || e.Name == "fenced" // these two take two thirds of the time; TestStrategies searches them with bounds
		if wanted[e.Name] = lockstrategytest.OnEmbedded(e) && (tier.Soaking() || !long); wanted[e.Name] {
			args = append(args, "--strategy", e.Name)
		}
	}
	for _, form := range []string{"json", "junit", "markdown", "html"} {
		files[form] = filepath.Join(t.TempDir(), form)
		args = append(args, "--"+form, files[form])
	}
	if out, err := shoptest.Command(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	read := func(form string) string {
		text, err := os.ReadFile(files[form])
		require.NoError(t, err)
		return string(text)
	}
	var report verify.Report
	if err := json.Unmarshal([]byte(read("json")), &report); err != nil || !report.OK {
		t.Fatalf("%v, ok %t", err, report.OK)
	}
	seen := map[string]bool{}
	for _, c := range report.Cells {
		seen[c.Strategy+" "+string(c.Fault)] = true
		explored := slices.Contains(promise.Explorations(), c.Fault)
		if explored && (c.Verdict == verdict.Holds) == (c.Witness != nil) || explored && !strings.HasPrefix(c.Replay, "shop explore "+c.Strategy) {
			t.Errorf("%s under %s: %s, witness %v, %s", c.Strategy, c.Fault, c.Verdict, c.Witness, c.Replay)
		}
		if c.Witness == nil {
			continue
		}
		if c.Witness.Text == "" || c.Witness.Mermaid == "" {
			t.Errorf("%s under %s: the JSON has no drawing of the witness", c.Strategy, c.Fault)
		}
		for form, want := range map[string]string{"junit": c.Witness.Schedule, "html": c.Witness.Schedule} {
			if !strings.Contains(read(form), want) {
				t.Errorf("%s under %s: the %s lacks its witness", c.Strategy, c.Fault, form)
			}
		}
	}
	for _, e := range lockstrategy.All() {
		name := e.Name
		if here := wanted[name]; seen[name+" explore"] != here || seen[name+" rush"] != (here && tier.Soaking()) {
			t.Errorf("%s: wanted %t, explored %t, rush %t", name, here, seen[name+" explore"], seen[name+" rush"])
		}
	}
}

// TestVerifyMissingServer: the error names a missing server program and how to install it, and
// nothing is left running.
func TestVerifyMissingServer(t *testing.T) {
	tier.Test(t, "needs servers")
	tmp := t.TempDir()
	verify := shoptest.Raced(t, "verify", "--engine", "local", "--strategy", "queue", "--fault", "pause")
	shell := t.TempDir()
	for _, program := range []string{"sh", "rm", "sleep"} {
		path := "/bin/" + program
		require.NoError(t, os.Symlink(path, filepath.Join(shell, program)))
	}
	verify.Env = []string{"PATH=" + shell, "TMPDIR=" + tmp, "HOME=" + tmp}
	said, _ := verify.CombinedOutput()
	if code := verify.ProcessState.ExitCode(); code == exitHarness && !strings.Contains(string(said), "get it with") {
		t.Errorf("%s; want how to get the program", said)
	} else if code != exitHarness {
		t.Skipf("exit %d: the servers are in folders that are searched beside PATH: %s", code, said)
	}
	webtest.Eventually(t, "no process is left", func() bool { return len(shoptest.With(t, "TMPDIR="+tmp)) == 0 })
}

// TestHarnessErrorIsRed: a run with a cell that could not be judged is not green.
func TestHarnessErrorIsRed(t *testing.T) {
	sound := verify.Cell{Strategy: "mutex", Fault: promise.Rush, Promise: verdict.Holds, Verdict: verdict.Holds, OK: true}
	wrong, void := sound, sound
	wrong.Verdict, wrong.OK = verdict.Oversold, false
	void.Verdict, void.OK = verdict.Inconclusive, false
	lost := sound.Failed(errors.New("the same schedule did not run the same way again"))
	for name, c := range map[string]struct {
		cells []verify.Cell
		code  int
	}{
		"one of two":            {[]verify.Cell{lost, sound}, exitBroken},
		"beside a void one":     {[]verify.Cell{void, lost}, exitBroken},
		"beside a break":        {[]verify.Cell{lost, wrong}, exitBroken},
		"nothing could be told": {[]verify.Cell{lost, lost}, exitHarness},
	} {
		var exit *exitError
		if err := exitOf(verify.Report{Cells: c.cells}); !errors.As(err, &exit) || exit.code != c.code {
			t.Errorf("%s: %v, want exit %d", name, err, c.code)
		}
	}
}

// TestVerifyNothingLeftBehind: Ctrl-C or SIGKILL leaves nothing behind, not even a shop that SIGSTOP
// has stopped.
func TestVerifyNothingLeftBehind(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{{"interrupt", syscall.SIGINT, exitInterrupted}, {"kill", syscall.SIGKILL, -1}} {
		tmp, kept := t.TempDir(), t.TempDir()
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			verify := shoptest.Command(t, "verify", "--engine", "local", "--strategy", "watchdog", "--fault", "pause", "--history", kept)
			verify.Env = append(verify.Environ(), "TMPDIR="+tmp)
			var stderr bytes.Buffer
			verify.Stderr = &stderr
			require.NoError(t, verify.Start())
			ended := make(chan error, 1)
			go func() { ended <- verify.Wait() }()
			struck := func() bool {
				text, _ := os.ReadFile(filepath.Join(kept, "watchdog", "pause.ndjson"))
				return bytes.Contains(text, []byte(`"struck"`))
			}
			for !struck() {
				select {
				case err := <-ended:
					t.Fatalf("it ended before the fault: %v: %s", err, &stderr)
				case <-time.After(time.Millisecond):
				}
			}
			if !slices.ContainsFunc(shoptest.With(t, "TMPDIR="+tmp), func(s string) bool { return strings.Contains(s, "--failpoints") }) {
				t.Error("no shop is seen: the search finds nothing")
			}
			require.NoError(t, verify.Process.Signal(c.signal))
			<-ended
			if got := verify.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit %d, want %d", got, c.code)
			}
			webtest.Eventually(t, "no process is left", func() bool { return len(shoptest.With(t, "TMPDIR="+tmp)) == 0 })
			if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// TestVerifyKeepsNoHistories: without --history, a run whose cells are all as promised leaves no folder.
func TestVerifyKeepsNoHistories(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	tmp := t.TempDir()
	verify := shoptest.Command(t, "verify", "--engine", "local", "--strategy", "redis,conditional", "--fault", "redis-restart,rush", "--json")
	verify.Env = append(verify.Environ(), "TMPDIR="+tmp)
	said, err := verify.Output()
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 || bytes.Contains(said, []byte(`"history"`)) {
		t.Errorf("%v, left behind: %v: %s", err, left, said)
	}
}

// TestIdleFlags: a flag without an effect on the chosen cells is named in one line.
func TestIdleFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"--lease 5s --redlock-nodes 3": 2, "": 0} {
		c := verifyCommand()
		require.NoError(t, c.ParseFlags(strings.Fields(args)))
		rows := []verify.Strategy{{Subject: fault.Subject{Name: "redis", Needs: []lockstrategy.Need{lockstrategy.NeedsRedis}}}}
		if says := idleFlags(c, rows, []promise.Condition{promise.Rush}); len(says) != want {
			t.Errorf("%s: %q, want %d lines", args, says, want)
		}
		rows[0].Needs = append(rows[0].Needs, lockstrategy.NeedsRedlock)
		if says := idleFlags(c, rows, []promise.Condition{promise.Pause}); len(says) > 0 {
			t.Errorf("%s: %q, and both have an effect", args, says)
		}
	}
}

// TestVerifyExplain: the evidence of each cell of a run can be read from its JSON report.
func TestVerifyExplain(t *testing.T) {
	tier.Test(t, "starts the command for each case")
	t.Parallel()
	folder := t.TempDir()
	explain := func(args ...string) (code int, stdout, stderr string) {
		shop := shoptest.Command(t, append([]string{"verify"}, args...)...)
		shop.Dir = folder
		return shoptest.Exit(t, shop)
	}
	if code, out, stderr := explain("--strategy", "none,redis", "--fault", "explore,rush", "--report", "run.json"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	for cell, wants := range map[string][]string{
		"none/rush":    {"strategy   none: ", "condition  rush: 200 buyers", "promised   oversold", "seen       oversold, as promised", "evidence   ", " units sold of 100 stocked\n", "again      ./shop verify --engine embedded --strategy none --fault rush\n"},
		"none/explore": {"again      ./shop explore none --replay v1:none:", "│ step │", "oversold: 2 units sold of 1 stocked"},
		"Y/rush":       {"strategy   redis: ", "seen       holds, as promised", "evidence   100 units sold of 100 stocked, 0 left"},
	} {
		code, out, stderr := explain("--explain", cell, "--from", "run.json")
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit %d: %s", cell, code, stderr)
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s lacks %q:\n%s", cell, want, out)
			}
		}
	}
	for name, text := range map[string]string{"broken.json": "{", "other.json": `{"results": []}`} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--explain", "redis/rush"}, "run make verify"},
		{[]string{"--explain", "redis/rush", "--from", "none.json"}, "--from: open none.json: no such file"},
		{[]string{"--explain", "redis/rush", "--from", "broken.json"}, "broken.json: not a JSON report of shop verify: unexpected end"},
		{[]string{"--explain", "redis/rush", "--from", "other.json"}, "other.json: not a JSON report of shop verify: it has no cells"},
		{[]string{"--explain", "redis", "--from", "run.json"}, `invalid cell "redis"; expected STRATEGY/CONDITION`},
		{[]string{"--explain", "rediss/rush", "--from", "run.json"}, `unknown strategy "rediss" (did you mean "redis"?)`},
		{[]string{"--explain", "redis/rash", "--from", "run.json"}, `unknown fault "rash" (did you mean "rush"?)`},
		{[]string{"--explain", "redlock/rush", "--from", "run.json"}, "this report has no strategy redlock"},
		{[]string{"--explain", "redis/pause", "--from", "run.json"}, "this report has redis only under explore, rush"},
		{[]string{"--explain", "redis/rush", "--quick"}, "leave out --quick"},
		{[]string{"--from", "run.json"}, "--from belongs to --explain"},
	} {
		code, out, stderr := explain(c.args...)
		if code != exitHarness || out != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %q%q; want 2 and one line with %q", c.args, code, out, stderr, c.want)
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(folder, matrixResults), 0o755))
	require.NoError(t, os.Rename(filepath.Join(folder, "run.json"), filepath.Join(folder, matrixResults, "mariadb.json")))
	if code, out, stderr := explain("--explain", "redis/rush"); code != 0 || !strings.HasPrefix(out, "strategy   redis") {
		t.Errorf("from the newest result: exit %d: %s%s", code, out, stderr)
	}
}
