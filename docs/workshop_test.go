//go:build unix

package docs_test

import (
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// A transcript is a command of a page, with the output that the page shows.
//
//	```console
//	$ shop rush --strategy none
//	...
//	 none      95~      200  ...
//	```
//
// In the output, "..." alone in a line matches any lines, and within a line any text. A number before
// "~" matches any number, and white space any white space. A last line "^C" sends Ctrl-C after the
// command has printed all lines above. A command that ends with "&" runs until the end of the page.
// After it has printed all its lines, the next command begins.
type transcript struct {
	line       int // line number on the page
	command    string
	prints     []string
	ctrlC      bool
	background bool
}

func transcripts(page string) (all []transcript) {
	inside := false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside && line == "```console"
		case !inside:
		case strings.HasPrefix(line, "$ "):
			command, background := strings.CutSuffix(line[2:], " &")
			all = append(all, transcript{line: i + 1, command: command, background: background})
		case len(all) > 0:
			last := &all[len(all)-1]
			if line == "^C" {
				last.ctrlC = true
			} else {
				last.prints = append(last.prints, line)
			}
		}
	}
	return all
}

var (
	varies = regexp.MustCompile(`[0-9][0-9.,]*~`)
	spaces = regexp.MustCompile(`[\s─┼┌┐└┘├┤┬┴]+`) // the width of a table's lines depends on its numbers
)

// pattern returns an expression that matches the plainText of the output on the page.
func (s transcript) pattern() *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for _, line := range s.prints {
		switch line = strings.TrimSpace(spaces.ReplaceAllString(line, " ")); {
		case line == "...":
			b.WriteString(`(?:[^\n]*\n)*?`)
			continue
		case line == "":
			continue
		}
		for at, end := 0, 0; at < len(line); at = end {
			next := varies.FindStringIndex(line[at:])
			if next == nil {
				b.WriteString(literally(line[at:]))
				break
			}
			b.WriteString(literally(line[at:at+next[0]]) + `[0-9][0-9.,]*`)
			end = at + next[1]
		}
		b.WriteString(`\n`)
	}
	if s.ctrlC || s.background {
		return regexp.MustCompile(b.String())
	}
	return regexp.MustCompile(b.String() + `$`)
}

func literally(text string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(text), `\.\.\.`, `[^\n]*`)
}

// plainText returns output without empty lines and rules, for a comparison by pattern.
func plainText(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(spaces.ReplaceAllString(line, " ")); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// TestTranscripts: the comparison of a page with an output finds differences.
func TestTranscripts(t *testing.T) {
	const page = "text\n```console\n$ a\n┌──┐\n x  12~ ms  holds\n...\nend\n$ b\nready ... now\n^C\n$ c &\nready ... now\n```\n$ none\n```sh\n$ neither\n```\n"
	all := transcripts(page)
	if len(all) != 3 || all[0].command != "a" || all[1].command != "b" || all[2].command != "c" || all[1].line != 8 ||
		all[0].ctrlC || !all[1].ctrlC || all[2].ctrlC || all[0].background || all[1].background || !all[2].background {
		t.Fatalf("%+v", all)
	}
	for _, s := range all[1:] {
		if p := s.pattern(); !p.MatchString("ready to go now\nmore\n") || p.MatchString("ready\n") {
			t.Errorf("%s", p)
		}
	}
	for out, want := range map[string]bool{
		"┌────┐\n x 7 ms  holds\nend\n":                  true,
		"┌────┐\n x 1,234.5 ms holds\nmore\nmore\nend\n": true,
		"x 7 ms oversold\nend\n":                         false,
		"x some ms holds\nend\n":                         false,
		"x 7 ms holds\n":                                 false,
		"x 7 ms holds\nend\nmore\n":                      false,
		"before\nx 7 ms holds\nend\n":                    false,
		"x 7 ms, it holds\nend\n":                        false,
	} {
		expect.Equal(t, all[0].pattern().MatchString(plainText(out)), want, out)
	}
}

// transcribed lists the pages whose commands make test runs: the first pages for a reader.
var transcribed = []string{"../README.md", "tutorial/first-hour.md", "reference/commands.md", "reference/commands/explore.md", "reference/commands/rush.md"}

// transcribedLong lists the other pages, whose commands only make soak runs.
var transcribedLong = []string{
	"guides/choose-a-strategy.md", "guides/test-your-shop.md", "guides/run-a-workshop.md", "guides/run-a-workshop-answers.md", "guides/add-to-ci.md",
	"reference/exercises.md", "reference/http.md", "reference/verdicts.md",
	"design/README.md", "design/purchase.md", "design/sold-out-check.md", "design/admission.md", "design/waiting.md",
	"design/judging.md", "design/servers.md", "design/explorer.md", "design/programs.md",
	"README.md", "reference/yaml.md", "reference/faults.md", "reference/benchmarks.md",
	"reference/commands/bench.md", "reference/commands/ci.md", "reference/commands/exercise.md", "reference/commands/init.md", "reference/commands/migrate.md",
	"reference/commands/play.md", "reference/commands/scan.md", "reference/commands/serve.md",
	"reference/commands/strategies.md", "reference/commands/verify.md", "reference/commands/version.md",
	"reference/matrix/README.md", "reference/strategies/coordination.md",
}

// otherExamples names the test of each example that is not a transcript. A name that ends with "/" is a folder.
var otherExamples = map[string]string{
	"guides/lock-in-your-program.md": "TestLockExample",
	"reference/databases.md":         "TestDatabasesPage", "reference/glossary.md": "TestGlossary",
	"reference/track-record.md": "trackrecord/libraries",
	"reference/tests.md":        "make lint", "reference/articles.md": "TestArticles", "reference/tryton-assigns-twice.md": "TestTryton", "reference/better-auth-last-use.md": "TestBetterAuth",
	"reference/matrix/":       "TestMatrixPages",
	"reference/strategies.md": "TestStrategyPages", "reference/strategies/": "TestStrategyPages",
	"reference/witnesses/": "TestWitnesses, and internal/explore/promisetest",
}

// TestPages: each page under docs names its reader in its first sentence, and a test runs its example.
func TestPages(t *testing.T) {
	reader := regexp.MustCompile(`(?s)\n# [^\n]+\n\n(?:[^.]|\.\S)*?\b(developer|engineer|maintainer|reader|user|leader)s?\b`)
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		folder := filepath.Dir(strings.Replace(path, "/by-database", "", 1)) + "/"
		if !slices.Contains(transcribed, path) && !slices.Contains(transcribedLong, path) && otherExamples[path] == "" && otherExamples[folder] == "" {
			t.Errorf("no test runs an example of docs/%s", path)
		}
		if !reader.MatchString("\n" + shoptest.Read(t, "docs/"+path)) {
			t.Errorf("the first sentence of docs/%s names no reader", path)
		}
		return nil
	})
	require.NoError(t, err)
}

// TestLockExample: lock-in-your-program.md shows an example that the tests of package rlock run.
func TestLockExample(t *testing.T) {
	code, guide := shoptest.Read(t, "rlock/example_test.go"), shoptest.Read(t, "docs/guides/lock-in-your-program.md")
	_, example, _ := strings.Cut(guide, "```go\n")
	example, _, _ = strings.Cut(example, "```")
	if example == "" || !strings.Contains(strings.ReplaceAll(code, "\n\t", "\n"), "\n"+example+"// Output:\n// inside: true\n// unlocked: true\n") {
		t.Errorf("rlock/example_test.go does not have these lines:\n%s", example)
	}
}

// freePort returns a port to use instead of a page's 8080, which another program may use.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// TestTranscribedPages runs the commands of each page and compares their output.
func TestTranscribedPages(t *testing.T) {
	tier.Test(t, "the pages are run by the built program")
	t.Parallel()
	if _, err := exec.LookPath("npm"); err == nil { // install now; otherwise make workshop installs the modules while other tests use them
		shoptest.NodeModules(t)
	}
	port := freePort(t)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(shoptest.Path(t), filepath.Join(bin, "shop")))
	pages := transcribed
	if tier.Soaking() {
		pages = slices.Concat(pages, transcribedLong)
	}
	for _, name := range pages {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, ".curlrc"), []byte("silent\n"), 0o600); err != nil { // curl then prints no progress, as on a terminal
				t.Fatal(err)
			}
			env := append(os.Environ(), "PATH="+bin+":/usr/bin:"+os.Getenv("PATH"), // the examples' Python is Debian's
				"XDG_CONFIG_HOME="+folder, "CURL_HOME="+folder, "WORK="+folder, "SHOP_ADDR=127.0.0.1:"+port,
				"MAKEFLAGS=", "MAKELEVEL=") // undo the settings of make test, which may run this test
			page := shoptest.Read(t, "docs/"+name)
			if _, err := exec.LookPath("curl"); err != nil && strings.Contains(page, "\n$ curl ") {
				t.Skip("curl is not installed")
			}
			all := transcripts(strings.NewReplacer("8080", port, "./shop ", "shop ").Replace(page))
			if len(all) == 0 {
				t.Error("the page has no command")
			}
			for _, s := range all {
				start := time.Now()
				out := s.run(t, env)
				t.Logf("%s: %.1f s", s.command, time.Since(start).Seconds())
				if want := s.pattern(); !want.MatchString(plainText(out)) {
					t.Errorf("docs/%s:%d: $ %s\nprinted\n%s\nand the page says\n%s", name, s.line, s.command, out, strings.Join(s.prints, "\n"))
				}
			}
		})
	}
}

// TestWorkshopMissing: without Go and Node, make workshop reports the parts that need them as not
// ready.
func TestWorkshopMissing(t *testing.T) {
	bin := t.TempDir()
	for _, name := range strings.Fields("bash cat chmod dirname git head mktemp printf rm sed sort tail uname chromium") {
		if path, err := exec.LookPath(name); err == nil {
			require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
		}
	}
	c := exec.Command("bash", "tools/workshop.sh")
	c.Dir, c.Env = "..", append(os.Environ(), "PATH="+bin)
	out, err := c.CombinedOutput()
	for _, want := range []string{
		"missing  Go: https://go.dev/dl", "missing  Node and npm: make servers\n",
		"\nnot ready; install what is missing above:\n  - the 90 minutes\n  - exercises in Go\n  - exercises 1 to 4 in Node\n",
	} {
		expect.Contains(t, string(out), want)
	}
	if c.ProcessState.ExitCode() != 1 || t.Failed() {
		t.Errorf("%v:\n%s", err, out)
	}
}

// run returns the command's standard output and standard error, in one text. For a command in the
// background, this is the text that it has printed so far.
func (s transcript) run(t *testing.T, env []string) string {
	t.Helper()
	var out shoptest.Buffer
	c := exec.CommandContext(t.Context(), "sh", "-c", s.command)
	c.Dir, c.Env, c.Stdout, c.Stderr = "..", env, &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	deadline := time.After(2 * webtest.Patience)
	for seen := false; ; {
		select {
		case err := <-ended:
			if err != nil && !s.ctrlC { // a page with another exit code prints the code
				t.Errorf("docs: $ %s: %v", s.command, err)
			}
			return out.String()
		case <-deadline:
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
			<-ended
			t.Errorf("$ %s does not end", s.command)
			return out.String()
		case <-time.After(20 * time.Millisecond):
			if !s.ctrlC && !s.background || seen || !s.pattern().MatchString(plainText(out.String())) {
				continue
			}
			if s.background {
				t.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL); <-ended })
				return out.String()
			}
			seen = true
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGINT)
		}
	}
}
