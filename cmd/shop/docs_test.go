package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/verdict"
)

//go:generate go test -run TestREADME -update .

var update = flag.Bool("update", false, "write the tables that come from the catalogue")

// TestREADME: the table of strategies is the catalogue's.
func TestREADME(t *testing.T) {
	const file, begin, end = "../../README.md", "<!-- strategies: written by go generate -->\n", "<!-- /strategies -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md lacks %q and %q", begin, end)
	}
	want := before + begin + strategyTable() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("the README's table of strategies is not the catalogue's: run make generate")
	}
	if lines := strings.Count(want, "\n"); lines > 200 {
		t.Errorf("README.md has %d lines; 200 are allowed", lines)
	}
}

func strategyTable() string {
	var b strings.Builder
	b.WriteString("\n| family | strategy | does | breaks when | rush, 1 process | 2 processes |\n|---|---|---|---|---|---|\n")
	family := ""
	for _, e := range lockstrategy.All() {
		shown := e.Family
		if shown == family {
			shown = ""
		}
		family = e.Family
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", shown, e.Name, cell(e.Summary), cell(e.BreaksWhen),
			promised(e, lockstrategy.Rush), promised(e, lockstrategy.TwoProcesses))
	}
	return b.String() + "\n"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// promised shows a break in bold, and what differs on SQLite.
func promised(e lockstrategy.Entry, f lockstrategy.Fault) string {
	show := func(v verdict.Verdict) string {
		switch v {
		case verdict.Holds:
			return string(v)
		case "":
			return "most times"
		}
		return "**" + string(v) + "**"
	}
	text := show(e.Promised(f, "mysql"))
	if lite := e.Promised(f, "sqlite"); lite != e.Promised(f, "mysql") {
		text += " (SQLite: " + show(lite) + ")"
	}
	return text
}
