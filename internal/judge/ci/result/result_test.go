package result

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
)

func breaks(rules ...string) Check {
	return Check{Name: "a.yaml", Kind: Explore, Status: Broken, Verdict: verdict.Broken, Why: "why", Complete: true, Witness: &BreakingSchedule{Rules: rules}}
}

func holds(complete bool) Check {
	return Check{Name: "a.yaml", Kind: Explore, Status: Holds, Verdict: verdict.Holds, Complete: complete}
}

// TestCompare: a break is new unless the baseline has it, and a fix needs the old witness and a complete
// search.
func TestCompare(t *testing.T) {
	t.Parallel()
	failed := breaks()
	failed.Verdict = verdict.Failed
	inconclusive := Check{Name: "a.yaml", Status: Inconclusive, Why: "nothing"}
	replayed, lost := Replay{Holds: true, How: "it ran"}, Replay{How: "it cannot run"}
	other := breaks("one")
	other.Name = "b.yaml"
	for _, c := range []struct {
		name     string
		old, now Check
		replay   Replay
		want     Change
		why      string
	}{
		{"a new break", holds(true), breaks("one"), Replay{}, New, "the baseline holds"},
		{"the same break", breaks("one", "two"), breaks("two", "three"), Replay{}, Before, "the baseline breaks, too"},
		{"another rule", breaks("one"), breaks("two"), Replay{}, New, "the baseline breaks another rule: one"},
		{"a wrong answer after a rule", breaks("one"), failed, Replay{}, New, "the baseline breaks another rule: one"},
		{"the same wrong answer", failed, failed, Replay{}, Before, "the baseline breaks, too"},
		{"a new check that breaks", other, breaks("one"), Replay{}, New, "the baseline does not have this check"},
		{"a break that was unknown", inconclusive, breaks("one"), Replay{}, New, "the baseline was inconclusive: nothing"},
		{"a fix", breaks("one"), holds(true), replayed, Fixed, "it ran"},
		{"a fix without the witness", breaks("one"), holds(true), lost, Unproven, "nothing broke, but the old witness proves no fix: it cannot run"},
		{"a fix without a complete search", breaks("one"), holds(false), replayed, Unproven, "nothing broke, but the search is not complete"},
		{"a break that became unclear", breaks("one"), inconclusive, Replay{}, Unproven, "the baseline breaks, and this run is inconclusive"},
		{"nothing", holds(true), holds(true), Replay{}, Same, ""},
		{"a new check", other, holds(true), Replay{}, Added, ""},
		{"unclear twice", inconclusive, inconclusive, Replay{}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &Baseline{checks: []Check{c.old}}
			b.Compare(&c.now, c.replay)
			if c.now.Change != c.want || c.now.ChangeWhy != c.why {
				t.Errorf("%s: %s; want %s: %s", c.now.Change, c.now.ChangeWhy, c.want, c.why)
			}
		})
	}
	now := breaks("one")
	(*Baseline)(nil).Compare(&now, Replay{})
	(&Baseline{Ignored: "it is old", checks: []Check{breaks("one")}}).Compare(&now, Replay{})
	expect.Equal(t, now.Change, "", "without a baseline")
}

// TestFinish: a break has priority over an error, and an error over an inconclusive check. A break of the
// baseline counts only with --strict.
func TestFinish(t *testing.T) {
	t.Parallel()
	old := breaks("one")
	old.Change = Before
	failed, nothing := Check{Status: Error}, Check{Status: Inconclusive}
	for _, c := range []struct {
		name   string
		checks []Check
		strict bool
		want   int
	}{
		{"none", nil, false, 0},
		{"holds", []Check{holds(true)}, false, 0},
		{"break last", []Check{nothing, failed, breaks()}, false, 1},
		{"break first", []Check{breaks(), failed, nothing}, false, 1},
		{"error last", []Check{nothing, holds(true), failed}, false, 2},
		{"error first", []Check{failed, nothing}, false, 2},
		{"inconclusive", []Check{holds(true), nothing, holds(true)}, false, 3},
		{"old break", []Check{old, holds(true)}, false, 0},
		{"old break and nothing proved", []Check{old, nothing}, false, 3},
		{"old break, strict", []Check{old}, true, 1},
	} {
		r := Result{Checks: c.checks, Strict: c.strict}
		r.Finish()
		if r.Exit != c.want || r.OK != (c.want == 0) {
			t.Errorf("%s: exit %d, ok %v; want %d", c.name, r.Exit, r.OK, c.want)
		}
	}
	r := Result{Checks: []Check{holds(true)}, Unfinished: "it was interrupted"}
	if r.Finish(); r.OK {
		t.Error("an unfinished run is ok")
	}
}

// TestReadBaseline: if one file cannot be used, the baseline has no checks, and one line says why.
func TestReadBaseline(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name string, value any) string {
		path := filepath.Join(folder, name)
		text, is := value.(string)
		if !is {
			encoded, err := json.Marshal(value)
			require.NoError(t, err)
			text = string(encoded)
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	one := write("1.json", Result{Schema: Schema, Commit: "c", Checks: []Check{breaks("one")}})
	other := breaks("two")
	other.Name = "b.yaml"
	two := write("2.json", Result{Schema: Schema, Checks: []Check{other}})
	b := ReadBaseline([]string{one, two})
	if b.Ignored != "" || !b.Broke("a.yaml") || !b.Broke("b.yaml") || b.Broke("c.yaml") || b.Check("c.yaml") != nil {
		t.Errorf("%+v", b)
	}
	if b.Missing([]Check{other}); len(b.Gone) != 1 || b.Gone[0] != "a.yaml" {
		t.Errorf("gone: %q", b.Gone)
	}
	for name, c := range map[string]struct {
		value any
		says  string
	}{
		"newer":   {Result{Schema: Schema + 1}, "has schema 2, and this program reads schema 1"},
		"text":    {"no\njson", "is not a result.json of shop ci"},
		"another": {`{"strategy": "none"}`, "is not a result.json of shop ci"},
		"list":    {`[]`, "is not a result.json of shop ci"},
		"wrong":   {`{"schema": 1, "checks": [{"name": 1}]}`, "cannot unmarshal number"},
	} {
		b := ReadBaseline([]string{one, write(name+".json", c.value)})
		if !strings.Contains(b.Ignored, c.says) || strings.Contains(b.Ignored, "\n") || b.Broke("a.yaml") {
			t.Errorf("%s: %q, want %q", name, b.Ignored, c.says)
		}
	}
	expect.Contains(t, ReadBaseline([]string{filepath.Join(folder, "none.json")}).Ignored, "no such file")
}

// TestDocument: every format shows each check under the heading of its status.
func TestDocument(t *testing.T) {
	t.Parallel()
	old := breaks("two")
	old.Name, old.Change, old.ChangeWhy = "old.yaml", Before, "the baseline breaks, too"
	retried := Check{Name: "slow.yaml", Kind: Explore, Status: Inconclusive, Verdict: verdict.Inconclusive, Why: "no", Attempts: []Attempt{{Status: Inconclusive}, {Status: Inconclusive}}}
	kept := Check{Name: "mine under rush", Kind: Verify, Status: Holds, Verdict: verdict.Oversold, Promise: verdict.Oversold}
	r := Result{Checks: []Check{breaks("one"), old, retried, {Name: "bad.yaml", Status: Error, Why: "there is no node"}, holds(true), kept}, Baseline: &Baseline{Ignored: "it is old", Gone: []string{"x"}}}
	r.Finish()
	d := r.Document()
	want := map[string]report.Status{"a.yaml": report.Contradicts, "old.yaml": report.Breaks, "slow.yaml": report.Void, "bad.yaml": report.Failed, "mine under rush": report.Breaks}
	for _, c := range d.Cases[:len(d.Cases)-2] {
		expect.Equal(t, c.Status, want[c.Suite], c.Suite, "status")
	}
	for _, format := range report.Formats() {
		var text strings.Builder
		require.NoError(t, format.Write(&text, d))
		for _, name := range []string{"a.yaml", "old.yaml", "slow.yaml", "bad.yaml", "no node"} {
			expect.Contains(t, text.String(), name, format.Ending)
		}
		if format.Ending == ".md" {
			for _, part := range []string{"1 broken, 1 could not run, 1 inconclusive, 1 known break (in the baseline), 1 broken as promised, 1 holds", "2 attempts: inconclusive, then inconclusive", "The baseline was not used: it is old", "does not have: x", "## Breaks, as in the baseline"} {
				expect.Contains(t, text.String(), part, "the summary")
			}
		}
	}
}
