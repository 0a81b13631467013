package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/lockstrategy"
)

//go:generate go test -run "TestREADME|TestCommandPages|TestStrategyPages|TestDatabasesPage" -update .

var update = flag.Bool("update", false, "write the generated pages and parts of pages")

// maxWords is the length of a page that a reader still finishes.
const maxWords = 1500

// readPage returns the text of a file of the project.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// comparePage compares a page with its generated text. With -update it first writes the page.
func comparePage(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		file := "../../" + path
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text := readPage(t, path); text != want {
		is, should := firstDifference(text, want)
		t.Errorf("%s is not current: run make generate. It has\n%s\nand should have\n%s", path, is, should)
	}
	if words := len(strings.Fields(want)); words > maxWords {
		t.Errorf("%s has %d words; maximum %d", path, words, maxWords)
	}
}

// firstDifference returns the first lines that differ between two texts that are not equal.
func firstDifference(a, b string) (inA, inB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for n := 0; ; n++ {
		switch {
		case n == len(as):
			return "(end)", bs[n]
		case n == len(bs):
			return as[n], "(end)"
		case as[n] != bs[n]:
			return as[n], bs[n]
		}
	}
}

// comparePages compares generated pages by their paths, and reports other pages in the folder.
func comparePages(t *testing.T, folder string, pages map[string]string) {
	t.Helper()
	for path, want := range pages {
		comparePage(t, path, want)
	}
	files, err := filepath.Glob("../../" + folder + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if path := folder + "/" + filepath.Base(file); pages[path] == "" {
			t.Errorf("%s is not generated any more: delete it", path)
		}
	}
}

// outputOf runs a command of shop in this process. It returns the output if the exit code is as expected.
func outputOf(t *testing.T, command string, want int) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), strings.Fields(command), &stdout, &stderr); code != want {
		t.Fatalf("shop %s: exit %d, want %d: %s%s", command, code, want, &stdout, &stderr)
	}
	return stdout.String()
}

// TestREADME: the page is short, its counts of strategies are the catalogue's, and the command above
// its diagram prints that diagram.
func TestREADME(t *testing.T) {
	text := readPage(t, "README.md")
	if lines := strings.Count(text, "\n"); lines > 100 {
		t.Errorf("README.md has %d lines; 100 are allowed", lines)
	}
	embedded, all := 0, len(lockstrategy.Names())
	for _, name := range lockstrategy.Names() {
		if onEmbedded(name) {
			embedded++
		}
	}
	counts := regexp.MustCompile(`\d+ of the \d+ strategies; the other \w+ need`)
	if !counts.MatchString(text) {
		t.Fatalf("README.md has no %q", counts)
	}
	comparePage(t, "README.md", counts.ReplaceAllLiteralString(text, fmt.Sprintf("%d of the %d strategies; the other %s need", embedded, all, inWords(all-embedded))))
	if _, diagram, _ := exitCode(t, "explore", "none", "--format", "mermaid"); !strings.Contains(text, "```mermaid\n"+diagram+"```\n") {
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
