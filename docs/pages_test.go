// Package docs_test writes the pages that follow from the catalogue, and compares other pages with the
// behaviour of the shop.
package docs_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

//go:generate go test -run "TestREADME|TestStrategyPages|TestDatabasesPage" -update .

// page returns the text of a page below docs/reference, from its template in testdata/templates.
func page(t *testing.T, path string, functions template.FuncMap) string {
	t.Helper()
	file := "testdata/templates/" + path + ".tmpl"
	parsed, err := template.New(filepath.Base(file)).Funcs(template.FuncMap{"example": example(t)}).Funcs(functions).ParseFiles(file)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, parsed.Execute(&text, nil))
	return text.String()
}

// example returns a function for templates. It runs a command of shop, and returns the command and the
// last lines of its output in Markdown. If last is 0, it returns all lines, and the command must find
// no violation.
func example(t *testing.T) func(command string, last int) string {
	return func(command string, last int) string {
		if last > 0 {
			all := strings.SplitAfter(outputOf(t, command, shoptest.Broken), "\n")
			return fmt.Sprintf("```console\n$ ./shop %s | tail -%d\n%s```", command, last, strings.Join(all[len(all)-1-last:], ""))
		}
		output := outputOf(t, command, 0)
		if strings.HasPrefix(output, "sequenceDiagram") {
			return "```\n$ ./shop " + command + "\n```\n\n```mermaid\n" + output + "```"
		}
		return "```\n$ ./shop " + command + "\n" + output + "```"
	}
}

// outputOf runs a command of shop. It returns the output if the exit code is as expected.
func outputOf(t *testing.T, command string, want int) string {
	t.Helper()
	code, stdout, stderr := shoptest.Run(t, strings.Fields(command)...)
	if code != want {
		t.Fatalf("shop %s: exit %d, want %d: %s%s", command, code, want, stdout, stderr)
	}
	return stdout
}

// TestREADME: the page is short, its numbers of strategies are right, and the command above its diagram
// prints that diagram.
func TestREADME(t *testing.T) {
	tier.Test(t, "it starts the shop for the diagram")
	text := shoptest.Read(t, "README.md")
	if lines := strings.Count(text, "\n"); lines > 100 {
		t.Errorf("README.md has %d lines; 100 are allowed", lines)
	}
	embedded, all := 0, len(lockstrategy.Names())
	for _, e := range lockstrategy.All() {
		if lockstrategytest.OnEmbedded(e) {
			embedded++
		}
	}
	counts := regexp.MustCompile(`\d+ of the \d+ strategies; the other \w+ need`)
	if !counts.MatchString(text) {
		t.Fatalf("README.md has no %q", counts)
	}
	golden.Compare(t, "../README.md", counts.ReplaceAllLiteralString(text, fmt.Sprintf("%d of the %d strategies; the other %s need", embedded, all, inWords(all-embedded))))
	if _, diagram, _ := shoptest.Run(t, "explore", "none", "--format", "mermaid"); !strings.Contains(text, "```mermaid\n"+diagram+"```\n") {
		t.Errorf("README.md does not show the diagram that shop explore none prints:\n%s", diagram)
	}
}

// inWords returns a number as a word, or in figures if it is above twelve.
func inWords(n int) string {
	words := strings.Fields("no one two three four five six seven eight nine ten eleven twelve")
	if n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n)
}

// TestArticles runs the command of each row of docs/reference/articles.md, and looks for the word that
// the row names. If the command is go test, its test must pass, and must not be skipped.
func TestArticles(t *testing.T) {
	tier.Test(t, "forty searches, bursts and cells")
	page := shoptest.Read(t, "docs/reference/articles.md")
	if n := len(strings.Fields(page)); n > 900 {
		t.Errorf("the page has %d words, more than 900", n)
	}
	row := regexp.MustCompile("(?m)^- [^\n]*?: `((?:shop|go|loadtest/)[^`\n]* [^`\n]*)`(?:: `([^`\n]+)`)?$")
	rows := row.FindAllStringSubmatch(page, -1)
	if all, without := strings.Count(page, "\n- "), 2; all != 65 || len(rows) != all-without {
		t.Errorf("%d of %d rows have a command; want all of 65 but %d", len(rows), all, without)
	}
	for _, r := range rows {
		words, want := strings.Fields(r[1]), r[2]
		t.Run(r[1], func(t *testing.T) {
			if words[0] != "shop" || slices.Contains(words, "local") {
				tier.Soak(t, "the articles with a command that needs servers or the Go tool")
			}
			if want == ", 0 violations" {
				tier.Soak(t, "internal/explore/promisetest runs the same searches")
			}
			t.Parallel()
			switch words[0] {
			case "shop":
				words[0] = shoptest.Path(t)
			case "go":
				words, want = append(words, "-v", "-count=1"), cmp.Or(want, "--- PASS")
			}
			c := exec.CommandContext(t.Context(), words[0], words[1:]...)
			c.Dir, c.Env = "..", os.Environ()
			out, err := c.CombinedOutput()
			if want == "" || !strings.Contains(string(out), want) || c.ProcessState.ExitCode() == shoptest.Harness {
				t.Errorf("%v; it does not print %q:\n%s", err, want, out)
			}
		})
	}
}

// TestGlossary: the terms are in alphabetical order, each once and in one line. The page shows the
// output of its example.
func TestGlossary(t *testing.T) {
	t.Parallel()
	text := shoptest.Read(t, "docs/reference/glossary.md")
	var terms []string
	for _, m := range regexp.MustCompile(`(?m)^### (.+)\n\n(.+)\n\n`).FindAllStringSubmatch(text, -1) {
		terms = append(terms, strings.ToLower(m[1]))
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(terms)))
	if headings := strings.Count(text, "\n### "); !slices.Equal(terms, sorted) || len(terms) != headings {
		t.Errorf("%d terms of %d headings; want each once, with one line, in this order:\n%s", len(terms), headings, strings.Join(sorted, "\n"))
	}
	command := regexp.MustCompile(`(?m)^\./shop (.+)$`).FindStringSubmatch(text)
	output := regexp.MustCompile("(?s)```text\n(.+?)```").FindStringSubmatch(text)
	if command == nil || output == nil {
		t.Fatal("the page has no command, or no output")
	}
	tier.Test(t, "it starts the shop for the example")
	if out := outputOf(t, command[1], shoptest.Broken); !strings.HasSuffix(out, output[1]) {
		t.Errorf("got\n%s\nwant at the end\n%s", out, output[1])
	}
}

const choosePage = "docs/guides/choose-a-strategy.md"

// TestChooseMarks: choose-a-strategy.md recommends only safe strategies, and its second table marks each
// strategy that is not safe.
func TestChooseMarks(t *testing.T) {
	mark := map[string]string{}
	recommended := map[string]bool{}
	for row := range strings.Lines(shoptest.Read(t, choosePage)) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			continue
		}
		safety := strings.TrimSpace(cells[2])
		for _, e := range lockstrategy.All() {
			recommended[e.Name] = recommended[e.Name] || strings.Contains(cells[2], "`"+e.Name+"`")
			if strings.Contains(cells[1], "`"+e.Name+"`") {
				mark[e.Name] = safety
			}
		}
	}
	for _, e := range lockstrategy.All() {
		safety := e.Safety(dialect.MySQL)
		if recommended[e.Name] && safety != "safe" {
			t.Errorf("the page recommends %s, which is %s", e.Name, safety)
		}
		if safety != "safe" && mark[e.Name] != safety {
			t.Errorf("the page marks %s as %q, and the catalogue as %q", e.Name, mark[e.Name], safety)
		}
	}
}

// TestGuideDiagram: explore --app draws the diagram of test-your-shop.md.
func TestGuideDiagram(t *testing.T) {
	tier.Soak(t, "searches a program for the diagram of test-your-shop.md")
	t.Parallel()
	want := shoptest.Block(t, "guides/test-your-shop.md", "sequenceDiagram")
	file := shoptest.Example(t, "node/naive.yaml")
	if code, stdout, stderr := shoptest.Run(t, "explore", "--app", file, "--format", "mermaid"); code != shoptest.Broken || !strings.Contains(stdout, want) {
		t.Errorf("exit %d, want %d with\n%s\ngot\n%s%s", code, shoptest.Broken, want, stdout, stderr)
	}
}

// TestGuideTarget: the example in Python oversells as test-your-shop.md shows, but not with its lock.
func TestGuideTarget(t *testing.T) {
	tier.Soak(t, "starts the Python example of test-your-shop.md")
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	broken := shoptest.Block(t, "guides/test-your-shop.md", "! oversold")
	for mode, c := range map[string]struct {
		table string
		code  int
	}{
		"naive": {broken, shoptest.Broken},
		"":      {strings.ReplaceAll(broken[strings.Index(broken, " mine"):], "! oversold", "holds"), 0},
	} {
		cmd := exec.Command(python, "../examples/http/shop.py", "0", mode)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		url, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		code, text, stderr := shoptest.Run(t, "verify", "--target", strings.TrimSpace(url), "--strategy", "mine", "--no-idempotency-keys")
		spaces := regexp.MustCompile(` +`)
		if code != c.code || !strings.Contains(spaces.ReplaceAllString(text, " "), spaces.ReplaceAllString(c.table, " ")) {
			t.Errorf("%q: exit %d, want %d with\n%s\ngot\n%s%s", mode, code, c.code, c.table, text, stderr)
		}
	}
}
