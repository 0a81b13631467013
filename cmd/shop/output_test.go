package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// resultCommands are the commands with a result, in their fastest form.
func resultCommands(t *testing.T) map[string][]string {
	return map[string][]string{
		"rush":       {"rush", "--strategy", "mutex"},
		"explore":    {"explore", "conditional", "--bound", "0"},
		"replay":     {"explore", "none", "--replay", "v1:none:b2:s1:1*2.2*5.1*3"},
		"verify":     {"verify", "--strategy", "mutex", "--fault", "rush"},
		"strategies": {"strategies"},
		"migrate":    {"migrate", "--db", "sqlite://" + filepath.Join(t.TempDir(), "shop.db")},
	}
}

// wrote reports whether a command with this exit code has written its result. On a slow machine a
// cell may be inconclusive.
func wrote(code int) bool { return code == 0 || code == exitBroken || code == exitInconclusive }

// TestReports: every command with a result prints it as JSON and writes it in every format, also in
// several at once.
func TestReports(t *testing.T) {
	tier.Test(t, "starts the command for each case")
	for name, args := range resultCommands(t) {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir() // the commands do not run in parallel: the explorer inspects every goroutine of the process
			for _, f := range report.Formats() {
				args = append(args, "--report", filepath.Join(folder, "result"+f.Ending))
			}
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), args, &stdout, &stderr); !wrote(code) {
				t.Fatalf("exit %d: %s", code, stderr.String())
			}
			if stdout.Len() == 0 || json.Valid(stdout.Bytes()) {
				t.Errorf("printed %q, want the text", stdout.String())
			}
			for _, f := range report.Formats() {
				if text, err := os.ReadFile(filepath.Join(folder, "result"+f.Ending)); err != nil || len(text) == 0 {
					t.Errorf("%s: %v, %d bytes", f.Ending, err, len(text))
				}
			}
			stdout.Reset()
			if code := run(t.Context(), append(resultCommands(t)[name], "--json"), &stdout, &stderr); !wrote(code) || !json.Valid(stdout.Bytes()) {
				t.Errorf("--json: exit %d, %q, %s", code, stdout.String(), stderr.String())
			}
		})
	}
}

// TestBadReport: a report that cannot be written causes one line and exit 2 before the run.
func TestBadReport(t *testing.T) {
	for name, args := range resultCommands(t) {
		for path, want := range map[string]string{
			"result.pdf": report.Endings(), "result": "unknown ending", "-": "--json prints", "-.json": "--json prints", "": "unknown ending",
			"/no/such/folder/x.md": "/no/such/folder/x.md",
			t.TempDir() + ".json/": "unknown ending",
		} {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append(slices.Clone(args), "--report", path), &stdout, &stderr)
			if said := strings.TrimSpace(stderr.String()); code != exitHarness || stdout.Len() > 0 || strings.Contains(said, "\n") || !strings.Contains(said, "--report") || !strings.Contains(said, want) {
				t.Errorf("%s --report %q: exit %d, %q, printed %q; want 2 and one line with %q", name, path, code, said, stdout.String(), want)
			}
		}
	}
	var stdout, stderr bytes.Buffer
	same := filepath.Join(t.TempDir(), "x.md")
	if code := run(t.Context(), []string{"strategies", "--report", same, "--report", same}, &stdout, &stderr); code != exitHarness || !strings.Contains(stderr.String(), "--report names "+same+" twice") {
		t.Errorf("the same file twice: exit %d, %q", code, stderr.String())
	}
}

// TestVerifyJSON: --json is a switch, and still accepts a file in every form that it accepted
// before.
func TestVerifyJSON(t *testing.T) {
	tier.Test(t, "starts the command for each case")
	for name, c := range map[string]struct {
		args  string // FILE stands for a file in a folder of its own
		print bool   // prints JSON and writes no file
	}{
		"alone":                {"verify --strategy mutex --fault rush --json", true},
		"before another flag":  {"verify --json --strategy mutex --fault rush", true},
		"a dash":               {"verify --json - --strategy mutex --fault rush", true},
		"= a dash":             {"verify --strategy mutex --fault rush --json=-", true},
		"true":                 {"verify --strategy mutex --fault rush --json=true", true},
		"a file":               {"verify --strategy mutex --fault rush --json FILE", false},
		"a file, then a flag":  {"verify --json FILE --strategy mutex --fault rush", false},
		"= a file":             {"verify --strategy mutex --json=FILE --fault rush", false},
		"a file and a report":  {"verify --strategy mutex --fault rush --json FILE --report FILE.md", false},
		"a report of the same": {"verify --strategy mutex --fault rush --json --report FILE.json", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "r") // any ending is allowed
			args := strings.Fields(strings.ReplaceAll(c.args, "FILE", file))
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), args, &stdout, &stderr); !wrote(code) {
				t.Fatalf("%v: exit %d: %s", args, code, stderr.String())
			}
			text, err := os.ReadFile(file)
			if c.print && (err == nil || !json.Valid(stdout.Bytes())) || !c.print && (!json.Valid(text) || json.Valid(stdout.Bytes())) {
				t.Errorf("%v: printed %q, the file has %q, %v", args, stdout.String(), text, err)
			}
		})
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"verify", "extra", "--json"}, &stdout, &stderr); code != exitHarness || !strings.Contains(stderr.String(), "extra") {
		t.Errorf("an argument: exit %d, %q", code, stderr.String())
	}
}

// TestOldOutputFlags: the old output flags are hidden in the help, and still work.
func TestOldOutputFlags(t *testing.T) {
	tier.Test(t, "starts the command for each case")
	for command, flags := range map[string][]string{"verify": {"junit", "markdown", "html"}} {
		var help, stderr bytes.Buffer
		if code := run(t.Context(), []string{command, "--help"}, &help, &stderr); code != 0 || !strings.Contains(help.String(), "--report file") {
			t.Fatalf("%s --help: exit %d, %s", command, code, help.String())
		}
		for _, flag := range flags {
			if strings.Contains(help.String(), "--"+flag) {
				t.Errorf("%s --help has --%s", command, flag)
			}
		}
	}
	for _, c := range []struct{ args, want string }{
		{"verify --strategy mutex --fault rush --junit -", "<testsuites"},
		{"verify --strategy mutex --fault rush --markdown -", "| `mutex` |"},
		{"verify --strategy mutex --fault rush --html -", "<!doctype html>"},
		{"explore conditional --bound 0 --format mermaid", "none breaks"},
		{"explore conditional --bound 0 --format html", "<!DOCTYPE html>"},
		{"explore conditional --bound 0 --format json", `"strategy": "conditional"`},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr); !wrote(code) || !strings.Contains(stdout.String(), c.want) {
			t.Errorf("%s: exit %d, %q; %s", c.args, code, stdout.String(), stderr.String())
		}
	}
}

// TestVersion: the built program names its toolchain and its target in one line. --version prints the same line, and
// the JSON agrees.
func TestVersion(t *testing.T) {
	t.Parallel()
	text := printed(t, shoptest.Command(t, "version"))
	if flag := printed(t, shoptest.Command(t, "--version")); flag != text {
		t.Errorf("shop --version prints %q, and shop version %q", flag, text)
	}
	if !strings.HasSuffix(text, runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("shop version prints %q, want one line that ends with the toolchain", text)
	}
	var b struct{ Version, Go, OS, Arch string }
	require.NoError(t, json.Unmarshal([]byte(printed(t, shoptest.Command(t, "version", "--json"))), &b))
	if !strings.HasPrefix(text, "shop "+b.Version+" (") || b.Go != runtime.Version() || b.OS != runtime.GOOS || b.Arch != runtime.GOARCH {
		t.Errorf("the JSON is %+v, and the text %q", b, text)
	}
}

func printed(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.Output()
	if err != nil {
		t.Fatal(c.Args, err)
	}
	return string(out)
}

// TestProof: after exit code 0 the text ends with a link to the page that says what the run proves. That page
// exists. Other exit codes print no such line.
func TestProof(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"explore conditional":                                     "what exit code 0 proves: " + report.Proof("explore"),
		"verify --strategy conditional --fault explore":           "exit code 0 does not cover any fault (only --engine local injects them); what it proves: " + report.Proof("verify"),
		"verify --strategy conditional --fault explore,crash":     "exit code 0 does not cover any fault (only --engine local injects them), nor the 1 left out; what it proves: " + report.Proof("verify"),
		"explore conditional --max-schedules 1":                   "",
		"explore conditional --json":                              "",
		"explore conditional --format mermaid":                    "",
		"explore none":                                            "",
		"explore conditional --replay v1:conditional:b2:s1:1*9.2": "",
	} {
		_, stdout, _ := shoptest.Run(t, strings.Fields(command)...)
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if last := lines[len(lines)-1]; want == "" && strings.Contains(stdout, "#what-exit-0-proves") || want != "" && last != want {
			t.Errorf("shop %s ends with %q, want %q", command, last, want)
		}
	}
	for _, command := range []string{"explore", "scan", "verify"} {
		page, _, _ := strings.Cut(report.Proof(command), "#")
		if !strings.Contains(shoptest.Read(t, page), "\n## What exit 0 proves\n") {
			t.Errorf("%s does not say what exit 0 proves", page)
		}
	}
}
