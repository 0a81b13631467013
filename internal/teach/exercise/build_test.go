package exercise

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises/judge"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/witness"
)

// TestCompiler: a learner sees the compiler's lines about its own files, and nothing about the
// judge.
func TestCompiler(t *testing.T) {
	for _, c := range []struct{ name, out, want string }{
		{"a slip", "# learner.example/token\n./shop.go:3:8: undefined: left\n", "shop.go:3:8: undefined: left"},
		{"no New", "# learner.example/token/oversell-judge\n/tmp/shop-exercise-27/main.go:11:18: undefined: code0.New\n", "New is missing, or is another function: func New(kit kata.Kit) kata.Strategy"},
		{
			"another New", "# x/oversell-judge\noversell-judge/main.go:11:11: cannot use code0.New (value of type func()) as judge.New value in map literal\n",
			"New is missing, or is another function: func New(kit kata.Kit) kata.Strategy",
		},
		{"a program", "/tmp/shop-exercise-27/main.go:6:2: import \"x\" is a program, not an importable package\n", `import "x" is a program, not an importable package`},
		{"an import", "shop.go:4:2: package sinc is not in std (/usr/local/go/src/sinc)\n", "shop.go:4:2: package sinc is not in std (/usr/local/go/src/sinc)"},
		{"nothing", "", "exit status 1"},
	} {
		expect.Equal(t, compiler(c.out, errors.New("exit status 1")), c.want, c.name)
	}
}

// TestEnding: the reason why a process has ended by itself is one line.
func TestEnding(t *testing.T) {
	const stack = "panic: oh\n\ngoroutine 7 [running]:\nruntime.x()\n\t/go/x.go:1 +0x1\nlearner.example/token.(*shop).Buy(0x1)\n\t/home/me/first/shop.go:17 +0x2c\n"
	for said, want := range map[string]string{
		stack:                                 "panic: oh, at shop.go:17",
		"fatal error: all goroutines sleep\n": "fatal error: all goroutines sleep",
		"":                                    "the code ends the whole process, where Buy should return",
	} {
		expect.Equal(t, ending(said, "learner.example/token"), want)
	}
}

// TestBuiltFrom finds the sources of this program, so that an exercise in any folder is compiled
// with them.
func TestBuiltFrom(t *testing.T) {
	if folder := builtFrom(); !isModule(folder) {
		t.Errorf("%q is not the folder of the module", folder)
	}
}

// TestProgramWhy: a finding about stock and records uses the words of the exercises in Go. Any
// other finding uses the words of the query.
func TestProgramWhy(t *testing.T) {
	const query, broken = "SELECT what FROM wrong", ", by a query that must return no row, and does: SELECT what FROM wrong -> it"
	for _, c := range []struct {
		stock, records string
		want           string
	}{
		{"0", "2", "oversold: 2 units sold of 1 stocked" + broken},
		{"-1", "2", "oversold: 2 units sold of 1 stocked" + broken},
		{"1", "1", "drifted: 1 update of the stock was lost" + broken},
		{"0", "0", "leaked: 1 unit left the stock and was not sold" + broken},
		{"0", "1", "broken: must return no row, and does: SELECT what FROM wrong -> it"},
		{"NULL", "1", "broken: must return no row, and does: SELECT what FROM wrong -> it"},
	} {
		w := &explore.Witness{
			Program: "exercise", Verdict: "broken", Watch: []string{"stock", "records"}, Steps: []explore.Step{{Watched: []string{c.stock, c.records}}},
			Findings: []witness.Finding{{Query: query, Columns: []string{"what"}, Rows: [][]string{{"it"}}}},
		}
		expect.Equal(t, programWhy(w, 1), c.want, "stock", c.stock, "records", c.records)
	}
	expect.Equal(t, programWhy(&explore.Witness{Verdict: "stalled", Why: "nobody goes on"}, 1), "stalled: nobody goes on", "without a step")
}

// TestUnknownCost: if the reference did not run, its round trips are not shown as a number.
func TestUnknownCost(t *testing.T) {
	var out strings.Builder
	passed := []judge.Check{{Name: "every order", Verdict: judge.Passed}}
	Result{Judgement: judge.Judgement{Checks: passed, Trips: 5}}.Print(&out)
	if !regexp.MustCompile(`round trips of one buyer, alone +5\.0 +-\n`).MatchString(out.String()) {
		t.Errorf("%s", out.String())
	}
}
