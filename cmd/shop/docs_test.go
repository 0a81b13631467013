package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/lockstrategy"
)

//go:generate go test -run "TestREADME|TestStrategyPages|TestDatabasesPage" -update .

var update = flag.Bool("update", false, "write README.md, docs/reference/strategies and docs/reference/databases.md from the catalogue")

// TestREADME: the page is short, its counts of strategies are the catalogue's, and its diagram is
// what the command that stands above it prints.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 100 {
		t.Errorf("README.md has %d lines; 100 are allowed", lines)
	}
	embedded, all := 0, len(lockstrategy.Names())
	for _, name := range lockstrategy.Names() {
		if onEmbedded(name) {
			embedded++
		}
	}
	counts := regexp.MustCompile(`\d+ of the \d+ strategies; the other \w+ need`)
	if !counts.Match(text) {
		t.Fatalf("README.md has no %q", counts)
	}
	want := counts.ReplaceAllLiteralString(string(text), fmt.Sprintf("%d of the %d strategies; the other %s need", embedded, all, inWords(all-embedded)))
	if *update {
		if err := os.WriteFile("../../README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("README.md has other numbers than the catalogue: run make generate")
	}
	if _, diagram, _ := exitCode(t, "explore", "none", "--format", "mermaid"); !strings.Contains(string(text), "```mermaid\n"+diagram+"```\n") {
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
