package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestReportSurvives: a run without a cell leaves the report of an earlier run unchanged, and
// writes no other file.
func TestReportSurvives(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		args []string
		code int
	}{
		"bad history":   {t.Context(), []string{"--engine", "local", "--strategy", "queue", "--history", "/dev/null/x"}, exitHarness},
		"nobody there":  {t.Context(), []string{"--target", closed.URL, "--strategy", "mine"}, exitHarness},
		"other report":  {t.Context(), []string{"--quick", "--html", "/no/such/folder/x.html"}, exitHarness},
		"nothing to do": {t.Context(), []string{"--engine", "local", "--strategy", "none", "--fault", "redis-restart"}, exitHarness},
		"interrupted":   {interrupted, []string{"--quick"}, exitInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			old, fresh := filepath.Join(t.TempDir(), "matrix.md"), filepath.Join(t.TempDir(), "matrix.json")
			require.NoError(t, os.WriteFile(old, []byte("of last week"), 0o600))
			var stdout, stderr bytes.Buffer
			if code := run(c.ctx, append([]string{"verify", "--markdown", old, "--json", fresh}, c.args...), &stdout, &stderr); code != c.code {
				t.Errorf("exit %d, want %d: %s", code, c.code, stderr.String())
			}
			if said := strings.TrimSpace(stderr.String()); said == "" || strings.Contains(said, "\n") {
				t.Errorf("%q, want one line", said)
			}
			if text, err := os.ReadFile(old); err != nil || string(text) != "of last week" {
				t.Errorf("%v, the report is %q", err, text)
			}
			for _, folder := range []string{filepath.Dir(old), filepath.Dir(fresh)} {
				if files, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(files) > 1 || len(files) == 1 && files[0] != old {
					t.Errorf("left behind: %v %v", files, err)
				}
			}
		})
	}
}

// TestReportReplaces: a report replaces an older one atomically, keeps its mode, and follows its
// link. A path that is not a regular file is written to directly.
func TestReportReplaces(t *testing.T) {
	folder := t.TempDir()
	file, link, pipe := filepath.Join(folder, "old.json"), filepath.Join(folder, "link.json"), filepath.Join(folder, "pipe")
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("old "), 1<<20), 0o640))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	read := make(chan []byte)
	go func() {
		text, _ := os.ReadFile(pipe)
		read <- text
	}()
	var stdout, stderr bytes.Buffer
	args := []string{"verify", "--strategy", "mutex", "--fault", "rush", "--json", link, "--markdown", pipe, "--html", "/dev/null"}
	if code := run(t.Context(), args, &stdout, &stderr); !wrote(code) {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	if text := <-read; !bytes.Contains(text, []byte("mutex")) {
		t.Errorf("the pipe got %q", text)
	}
	var written verify.Report
	if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &written) != nil || len(written.Cells) != 1 {
		t.Errorf("%v, %d bytes, %d cells", err, len(text), len(written.Cells))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v, want mode 0640", info.Mode(), err)
	}
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if files, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(files) != 3 {
		t.Errorf("left behind: %v %v", files, err)
	}
}

// TestReportOnFullDisk: if a report cannot be written completely, the old one stays unchanged, and
// no other file is left. A limit on file sizes stands for the full disk: both stop a write halfway.
func TestReportOnFullDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "report.json")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	shop := shoptest.Command(t, "strategies", "--report", file)
	limited := exec.Command("sh", append([]string{"-c", `ulimit -f 1 && exec "$@"`, "sh", shop.Path}, shop.Args[1:]...)...)
	limited.Env = shop.Env
	code, _, stderr := shoptest.Exit(t, limited)
	if code != exitHarness || !strings.Contains(stderr, "--report") || !strings.Contains(stderr, "too large") {
		t.Errorf("exit %d, %q; want %d and why", code, stderr, exitHarness)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("the old report is %q: %v", text, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestReportOfAKilledRun: a run that is ended by any signal, including SIGKILL, leaves a complete
// file in each format, and nothing else. The file says that the run is incomplete.
func TestReportOfAKilledRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		code   int
		why    string
	}{
		"interrupt": {syscall.SIGINT, exitInterrupted, "it was interrupted"},
		"terminate": {syscall.SIGTERM, exitInterrupted, "it was interrupted"},
		"kill":      {syscall.SIGKILL, -1, "it is under way, or was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			args := []string{"verify", "--quick"}
			for _, f := range report.Formats() {
				args = append(args, "--report", filepath.Join(folder, "report"+f.Ending))
			}
			read := func(ending string) []byte {
				text, _ := os.ReadFile(filepath.Join(folder, "report"+ending))
				return text
			}
			shop, tmp := shoptest.Command(t, args...), t.TempDir()
			shop.Env = append(shop.Environ(), "TMPDIR="+tmp)
			var stdout shoptest.Buffer
			shop.Stdout = &stdout
			require.NoError(t, shop.Start())
			webtest.Eventually(t, "every report is there", func() bool {
				return !slices.ContainsFunc(report.Formats(), func(f report.Format) bool { return len(read(f.Ending)) == 0 })
			})
			require.NoError(t, shop.Process.Signal(c.signal))
			_ = shop.Wait()
			if code := shop.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			webtest.Eventually(t, "no process is left", func() bool { return len(shoptest.With(t, "TMPDIR="+tmp)) == 0 })
			if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
			var kept verify.Report
			if err := json.Unmarshal(read(".json"), &kept); err != nil || kept.OK || kept.Unfinished != c.why || len(kept.Cells) == 0 {
				t.Errorf("%v, ok %t, unfinished %q, %d cells", err, kept.OK, kept.Unfinished, len(kept.Cells))
			}
			for ending, want := range map[string]string{".xml": "</testsuites>", ".md": "The run is unfinished", ".html": "</html>"} {
				if text := read(ending); !bytes.Contains(text, []byte(c.why)) || !bytes.Contains(text, []byte(want)) {
					t.Errorf("%s lacks %q or %q: %s", ending, c.why, want, text)
				}
			}
			for _, cell := range kept.Cells {
				if !strings.Contains(stdout.String(), cell.Line()) {
					t.Errorf("not printed: %s", cell.Line())
				}
			}
		})
	}
}
