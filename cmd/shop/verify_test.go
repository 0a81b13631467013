package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/verify"
)

// TestVerifyQuick: what every push runs. Each strategy that the embedded engine
// has is a cell, and all are as promised.
func TestVerifyQuick(t *testing.T) {
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	junit := filepath.Join(dir, "verify.xml")
	if code := run(t.Context(), []string{"verify", "--quick", "--json", "-", "--junit", junit}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var report verify.Report
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if all := len(report.Cells) + len(report.LeftOut); all != len(lockstrategy.Names()) || !report.OK {
		t.Errorf("%d strategies, ok %t; want all %d", all, report.OK, len(lockstrategy.Names()))
	}
	if text, err := os.ReadFile(junit); err != nil || !bytes.Contains(text, []byte("<testcase")) {
		t.Errorf("JUnit: %v, %d bytes", err, len(text))
	}
}

// TestVerifyBadInput: one line, exit 2.
func TestVerifyBadInput(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--strategy", "magic"}, "magic"},
		{[]string{"--fault", "earthquake"}, "earthquake"},
		{[]string{"--engine", "cloud"}, "cloud"},
		{[]string{"--quick", "--engine", "local"}, "--quick"},
		{[]string{"--quick", "--fault", "pause"}, "--quick"},
		{[]string{"--fault", "pause"}, "--engine local"},
		{[]string{"--lanes", "0"}, "--lanes"},
		{[]string{"--engine", "local", "--repeat", "0"}, "--repeat"},
		{[]string{"--repeat", "2"}, "--engine local"},
		{[]string{"--quick", "--html", "/no/such/folder/x.html"}, "/no/such/folder"},
		{[]string{"--engine", "local", "--history", "/dev/null/x", "--strategy", "queue"}, "/dev/null"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"verify"}, c.args...), &stdout, &stderr)
		said := strings.TrimSpace(stderr.String())
		if code != exitHarness || strings.Count(said, "\n") != 0 || !strings.Contains(said, c.want) {
			t.Errorf("%v: exit %d, %q; want 2 and one line with %q", c.args, code, said, c.want)
		}
	}
}

// TestVerifyMissingServer: a server program that is not there is named with how
// to get it, and nothing is left running.
func TestVerifyMissingServer(t *testing.T) {
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
	eventually(t, "no process is left", func() bool { return len(commandsIn(t, tmp)) == 0 })
}

// TestVerifyNothingLeftBehind: also while a shop stands still under SIGSTOP.
func TestVerifyNothingLeftBehind(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{{"interrupt", syscall.SIGINT, exitInterrupted}, {"kill", syscall.SIGKILL, -1}} {
		tmp, kept := t.TempDir(), t.TempDir()
		t.Run(c.name, func(t *testing.T) {
			verify := shopCommand(t, "verify", "--engine", "local", "--strategy", "watchdog", "--fault", "pause", "--history", kept)
			verify.Env = append(os.Environ(), "TMPDIR="+tmp)
			if err := verify.Start(); err != nil {
				t.Fatal(err)
			}
			struck := func() bool {
				text, _ := os.ReadFile(filepath.Join(kept, "watchdog", "pause.ndjson"))
				return bytes.Contains(text, []byte(`"struck"`))
			}
			for deadline := time.Now().Add(patience); !struck(); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("nothing was struck")
				}
			}
			if !slices.ContainsFunc(commandsIn(t, tmp), func(s string) bool { return strings.Contains(s, "--failpoints") }) {
				t.Error("no shop is seen: the search finds nothing")
			}
			if err := verify.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_ = verify.Wait()
			if got := verify.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit %d, want %d", got, c.code)
			}
			eventually(t, "no process is left", func() bool { return len(commandsIn(t, tmp)) == 0 })
			if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}
