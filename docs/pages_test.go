// Package docs_test writes the pages that follow from the catalogue, and compares the others with what the shop
// does.
package docs_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

//go:generate go test -run "TestREADME|TestStrategyPages|TestDatabasesPage" -update .

// page returns the text of a template in testdata/templates, which is the path of the page below docs/reference.
func page(t *testing.T, path string, functions template.FuncMap) string {
	t.Helper()
	file := "testdata/templates/" + path + ".tmpl"
	parsed, err := template.New(filepath.Base(file)).Funcs(template.FuncMap{"example": example(t)}).Funcs(functions).ParseFiles(file)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, nil); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// example returns a function that runs a command of shop and returns it with the last lines of its output in
// Markdown. Without a number it returns all lines of a command that finds no break.
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

// TestREADME: the page is short, its counts of strategies are the catalogue's, and the command above
// its diagram prints that diagram.
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

// inWords is a number as prose has it: in figures from thirteen on.
func inWords(n int) string {
	words := strings.Fields("no one two three four five six seven eight nine ten eleven twelve")
	if n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n)
}
