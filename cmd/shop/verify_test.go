package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
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
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestVerifyQuick runs the same as a CI job on every push. Each strategy on the embedded engine is
// explored, and all cells are as promised. Each violation has its witness in the reports that show
// evidence, and the Markdown page names it. make soak also sends the bursts, as TestConformance does.
func TestVerifyQuick(t *testing.T) {
	tier.Test(t, "a search of the whole catalogue")
	t.Parallel()
	files := map[string]string{}
	args := []string{"verify", "--fault", "explore"}
	if tier.Soaking() {
		args = []string{"verify", "--quick"}
	}
	for _, form := range []string{"json", "junit", "markdown", "html"} {
		files[form] = filepath.Join(t.TempDir(), form)
		args = append(args, "--"+form, files[form])
	}
	if out, err := plainCommand(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	read := func(form string) string {
		text, err := os.ReadFile(files[form])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var report verify.Report
	if err := json.Unmarshal([]byte(read("json")), &report); err != nil || !report.OK {
		t.Fatalf("%v, ok %t", err, report.OK)
	}
	page, _ := readMatrix(t, read("markdown"))
	seen := map[string]bool{}
	for _, c := range report.Cells {
		seen[c.Strategy+" "+string(c.Fault)] = true
		explored := slices.Contains(promise.Explorations(), c.Fault)
		if explored && (c.Verdict == verdict.Holds) == (c.Witness != nil) || explored && !strings.HasPrefix(c.Replay, "shop explore "+c.Strategy) {
			t.Errorf("%s under %s: %s, witness %v, %s", c.Strategy, c.Fault, c.Verdict, c.Witness, c.Replay)
		}
		if page[c.Strategy][c.Fault] != string(c.Verdict) {
			t.Errorf("%s under %s: the page has %q, want %q", c.Strategy, c.Fault, page[c.Strategy][c.Fault], c.Verdict)
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
	for _, name := range lockstrategy.Names() {
		if here := onEmbedded(name); seen[name+" explore"] != here || seen[name+" rush"] != (here && tier.Soaking()) {
			t.Errorf("%s: on the embedded engine %t, explored %t, rush %t", name, here, seen[name+" explore"], seen[name+" rush"])
		}
	}
}

// TestVerifyBadInput: one line, exit 2.
func TestVerifyBadInput(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--quick", "--engine", "local"}, "--quick"},
		{[]string{"--quick", "--fault", "pause"}, "--quick"},
		{[]string{"--fault", "pause"}, "--engine local"},
		{[]string{"--lanes", "0"}, "--lanes"},
		{[]string{"--engine", "local", "--repeat", "0"}, "--repeat"},
		{[]string{"--repeat", "2"}, "--engine local"},
		{[]string{"--lease", "3s"}, "--engine local"},
		{[]string{"--engine", "local", "--lease", "1h"}, "--lease must be between 2s and 50s (got 1h)"},
		{[]string{"--engine", "local", "--redlock-nodes", "2"}, "--redlock-nodes must be between 3 and 15 (got 2)"},
		{[]string{"--engine", "local", "--strategy", "none,queue", "--fault", "redis-restart,latency"}, "redis-restart, latency"},
		{[]string{"--quick", "--history", t.TempDir()}, "--history"},
		{[]string{"--quick", "--lanes", "3"}, "--lanes"},
		{[]string{"--quick", "--html", "/no/such/folder/x.html"}, "/no/such/folder/x.html"},
		{[]string{"--quick", "--junit", t.TempDir()}, "is a directory"},
		{[]string{"--quick", "--json", "-", "--markdown", "-"}, "--json and --markdown"},
		{[]string{"--quick", "--json", "/tmp/x", "--markdown", "/tmp/../tmp/x"}, "--json and --markdown"},
		{[]string{"--strategy", "none", "--fault", "explore", "--markdown", "/dev/full"}, "/dev/full"}, // after the run
		{[]string{"--engine", "local", "--history", "/dev/null/x", "--strategy", "queue"}, "/dev/null"},
		{[]string{"--engine", "local", "--history", "/proc", "--strategy", "queue"}, "/proc"},
		{[]string{"--engine", "local", "--history", "/tmp/x", "--json", "/tmp/./x"}, "--history and --json"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"verify"}, c.args...), &stdout, &stderr)
		said := strings.TrimSpace(stderr.String())
		if code != exitHarness || strings.Count(said, "\n") != 0 || !strings.Contains(said, c.want) {
			t.Errorf("%v: exit %d, %q; want 2 and one line with %q", c.args, code, said, c.want)
		}
	}
}

// TestVerifyMissingServer: the error names a missing server program and how to install it, and
// nothing is left running.
func TestVerifyMissingServer(t *testing.T) {
	tier.Test(t, "needs servers")
	tmp := t.TempDir()
	verify := shopCommand(t, "verify", "--engine", "local", "--strategy", "queue", "--fault", "pause")
	shell := t.TempDir()
	for _, program := range []string{"sh", "rm", "sleep"} {
		path := "/bin/" + program
		if err := os.Symlink(path, filepath.Join(shell, program)); err != nil {
			t.Fatal(err)
		}
	}
	verify.Env = []string{"PATH=" + shell, "TMPDIR=" + tmp, "HOME=" + tmp}
	said, _ := verify.CombinedOutput()
	if code := verify.ProcessState.ExitCode(); code == exitHarness && !strings.Contains(string(said), "get it with") {
		t.Errorf("%s; want how to get the program", said)
	} else if code != exitHarness {
		t.Skipf("exit %d: the servers are in folders that are searched beside PATH: %s", code, said)
	}
	webtest.Eventually(t, "no process is left", func() bool { return len(commandsIn(t, tmp)) == 0 })
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

// TestVerifyNothingLeftBehind also covers a shop that is stopped by SIGSTOP.
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
			verify := plainCommand(t, "verify", "--engine", "local", "--strategy", "watchdog", "--fault", "pause", "--history", kept)
			verify.Env = append(verify.Environ(), "TMPDIR="+tmp)
			var stderr bytes.Buffer
			verify.Stderr = &stderr
			if err := verify.Start(); err != nil {
				t.Fatal(err)
			}
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
			if !slices.ContainsFunc(commandsIn(t, tmp), func(s string) bool { return strings.Contains(s, "--failpoints") }) {
				t.Error("no shop is seen: the search finds nothing")
			}
			if err := verify.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			<-ended
			if got := verify.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit %d, want %d", got, c.code)
			}
			webtest.Eventually(t, "no process is left", func() bool { return len(commandsIn(t, tmp)) == 0 })
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
	verify := plainCommand(t, "verify", "--engine", "local", "--strategy", "redis,conditional", "--fault", "redis-restart,rush", "--json")
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
		if err := c.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
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

// playVerify runs the command with options that have no flag.
func playVerify(t *testing.T, o *verifyOptions, stdout, stderr io.Writer) error {
	t.Helper()
	command := verifyCommand()
	command.SetContext(t.Context())
	command.SetOut(stdout)
	command.SetErr(stderr)
	o.admission = cmp.Or(o.admission, noAdmission) // the flag's default
	return o.run(command)
}
