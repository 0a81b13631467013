package verdict

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// TestVerdictsPage: the table and the list of docs/reference/verdicts.md list exactly the verdicts, in their
// order.
func TestVerdictsPage(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), "verdict.go", nil, 0)
	require.NoError(t, err)
	var want []string
	ast.Inspect(source, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Verdict" {
				want = append(want, strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))
			}
		}
		return true
	})
	page, err := os.ReadFile("../../../docs/reference/verdicts.md")
	require.NoError(t, err)
	meanings, commands, ok := strings.Cut(string(page), "\n## See one\n")
	if !ok || len(want) < 10 {
		t.Fatalf("no section with commands, or too few verdicts: %q", want)
	}
	for name, part := range map[string]string{"meanings": meanings, "commands": commands} {
		var got []string
		for _, row := range regexp.MustCompile("(?m)^(?:\\||-) `([a-z_]+)`(?: \\||:)").FindAllStringSubmatch(part, -1) {
			got = append(got, row[1])
		}
		expect.DeepEqual(t, got, want, name)
	}
}

func TestKeeps(t *testing.T) {
	for _, c := range []struct {
		promise, got Verdict
		want         bool
	}{
		{Holds, Holds, true},
		{Holds, Oversold, false},
		{Holds, Inconclusive, false},
		{Oversold, Oversold, true},
		{Oversold, Drifted, true},
		{Drifted, Oversold, true},
		{Oversold, Holds, false},
		{Oversold, Leaked, false},
		{Oversold, Inconclusive, false},
		{Stalled, Stalled, true},
		{Stalled, Holds, false},
	} {
		expect.Equal(t, c.promise.Keeps(c.got), c.want, c.got, "keeps", c.promise)
	}
}

// TestIsBreak: a run without a verdict shows no violation.
func TestIsBreak(t *testing.T) {
	for got, want := range map[Verdict]bool{"": false, Holds: false, Inconclusive: false, LeakedLock: true, Lost: true} {
		if got.IsBreak() != want {
			t.Errorf("%q is a break: %v, want %v", got, !want, want)
		}
	}
}

// TestNonlinearizable: this verdict breaks any promise, even a missing one, and does not count as a promised
// violation of stock and records.
func TestNonlinearizable(t *testing.T) {
	if Holds.Keeps(Nonlinearizable) || Oversold.Keeps(Nonlinearizable) || !Oversold.Misses(Nonlinearizable) || Holds.Misses(Nonlinearizable) || !Nonlinearizable.NeverChance() {
		t.Error("nonlinearizable keeps a promise, or passes where there is none")
	}
}
