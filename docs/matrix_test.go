package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

const matrixFolder = "docs/reference/matrix/"

// matrixPages are the pages that make verify writes, with the servers of their runs.
var matrixPages = []struct{ name, database, redis string }{
	{"mariadb", dialect.MySQL, topology.Single},
	{"postgres", dialect.Postgres, topology.Single},
	{"galera", dialect.Galera, topology.Single},
	{"sentinel", dialect.MySQL, topology.Sentinel},
	{"cluster", dialect.MySQL, topology.Cluster},
}

// TestMatrixPages compares each page with the promises of the catalogue: its run covered every cell,
// and each verdict was the promised one. make quick skips cells that are missing on a page.
func TestMatrixPages(t *testing.T) {
	want := []string{"README"}
	readme, makefile := shoptest.Read(t, matrixFolder+"README.md"), shoptest.Read(t, "Makefile")
	for _, page := range matrixPages {
		want = append(want, page.name)
		expect.Contains(t, makefile, "/"+page.name+".md --report bin/matrix/"+page.name+".json\n", "make verify writes", page.name)
		t.Run(page.name, func(t *testing.T) {
			seen, conditions := readMatrix(t, shoptest.Read(t, matrixFolder+page.name+".md"))
			compareMatrix(t, seen, conditions, page.database, page.redis)
			for _, e := range lockstrategy.All() {
				for _, c := range conditions {
					if why := e.WhyNoPromise(c, page.database); why != "" && e.LackedOn(page.database) == "" && !strings.Contains(readme, "- "+sentence(why)+".\n") {
						t.Errorf("README.md lacks why nothing is promised for %s under %s: %s", e.Name, c, why)
					}
				}
			}
		})
	}
	files, err := filepath.Glob("../" + matrixFolder + "*.md")
	require.NoError(t, err)
	for _, file := range files {
		if !slices.Contains(want, strings.TrimSuffix(filepath.Base(file), ".md")) {
			t.Errorf("no test compares %s with the catalogue", file)
		}
	}
}

func compareMatrix(t *testing.T, seen map[string]map[promise.Condition]string, conditions []promise.Condition, database, redis string) {
	var played []promise.Condition
	for _, f := range promise.Played() {
		on, onRedis := promise.On(f), promise.OnRedis(f)
		switch {
		case on != "" && on != dialect.Kind(database) || onRedis != "" && onRedis != redis:
		case slices.Contains(conditions, f):
			played = append(played, f)
		default:
			t.Run(string(f), func(t *testing.T) { notPlayed(t, string(f)) })
		}
	}
	for _, e := range lockstrategy.All() {
		e = e.OnRedis(redis)
		if e.LackedOn(database) != "" {
			continue // the page says why
		}
		t.Run(e.Name, func(t *testing.T) {
			if seen[e.Name] == nil {
				notPlayed(t, e.Name)
			}
			for _, f := range played {
				shown := seen[e.Name][f]
				if promised := e.Promised(f, database); promised != "" && !promised.Keeps(verdict.Verdict(shown)) || lockstrategy.Affects(f, e.Needs) == (shown == "") {
					t.Errorf("%s under %s: promised %q, the page has %q: run make verify", e.Name, f, promised, shown)
				}
			}
		})
	}
}

// notPlayed ends the test of a strategy or a condition that is missing on the page.
func notPlayed(t *testing.T, what string) {
	t.Helper()
	if tier.Quick() {
		t.Skipf("the page has no %s yet: run make verify", what)
	}
	t.Fatalf("the page has no %s: run make verify", what)
}

// Parts of a page, as verify writes them.
var (
	matrixConditions = regexp.MustCompile(`(?m)^Conditions: (.+)\.$`)
	matrixRow        = regexp.MustCompile("(?m)^\\| `(.+)` \\| (.*) \\| (.*) \\| (.*) \\| (.*) \\|$")
	matrixNotRun     = regexp.MustCompile("(?m)^- (`[^:]+`): (.+)$")
	matrixCounted    = regexp.MustCompile(`^(?:all|the other) (\d+)$`)
)

// readMatrix returns the verdict of every cell of a page, and its conditions.
func readMatrix(t *testing.T, page string) (seen map[string]map[promise.Condition]string, conditions []promise.Condition) {
	t.Helper()
	listed := matrixConditions.FindStringSubmatch(page)
	if listed == nil {
		t.Fatal("the page lists no conditions")
	}
	conditions = conditionsIn(listed[1])
	_, below, _ := strings.Cut(page, "\n## Not run\n")
	seen = map[string]map[promise.Condition]string{}
	for _, row := range matrixRow.FindAllStringSubmatch(page, -1) {
		for name := range strings.SplitSeq(row[1], "`, `") {
			seen[name] = readMatrixRow(t, name, row[2:], conditions, below)
		}
	}
	return seen, conditions
}

// readMatrixRow returns the verdict of every cell of a strategy; "" if there is none.
func readMatrixRow(t *testing.T, name string, columns []string, conditions []promise.Condition, notRun string) map[promise.Condition]string {
	cells := map[promise.Condition]string{}
	if entry, ok := lockstrategy.ByName(name); ok {
		for _, c := range conditions {
			if !lockstrategy.Affects(c, entry.Needs) {
				cells[c] = ""
			}
		}
	}
	for _, m := range matrixNotRun.FindAllStringSubmatch(notRun, -1) {
		if strings.Contains(m[1], "`"+name+"`") {
			for _, c := range conditionsIn(m[2]) {
				cells[c] = ""
			}
		}
	}
	counted, number := "", ""
	for i, column := range columns {
		for group := range strings.SplitSeq(strings.Trim(column, "*?! "), "; ") {
			verdict, names, named := strings.Cut(strings.TrimLeft(group, "!? "), ": ")
			if i == 3 && group != "" && !named {
				verdict, names, named = "holds", group, true
			}
			if !named {
				continue
			}
			if m := matrixCounted.FindStringSubmatch(names); m != nil {
				counted, number = verdict, m[1]
				continue
			}
			for _, c := range conditionsIn(names) {
				cells[c] = verdict
			}
		}
	}
	others := 0
	for _, c := range conditions {
		if _, named := cells[c]; !named {
			cells[c] = counted
			others++
		}
	}
	if number != "" && number != fmt.Sprint(others) {
		t.Errorf("%s: the row counts %s conditions, and %d are left", name, number, others)
	}
	return cells
}

func conditionsIn(list string) (all []promise.Condition) {
	for name := range strings.SplitSeq(list, ", ") {
		all = append(all, promise.Condition(name))
	}
	return all
}

// TestMatrixReadsBack: readMatrix finds every cell of a report on its page.
func TestMatrixReadsBack(t *testing.T) {
	r := verify.Report{Engine: "local"}
	add := func(strategy string, f promise.Condition, promised, seen verdict.Verdict) {
		c := verify.Cell{Strategy: strategy, Fault: f, Promise: promised, Verdict: seen}
		c.Settle()
		r.Cells = append(r.Cells, c)
	}
	for _, f := range []promise.Condition{promise.Rush, promise.Units, promise.Crash, promise.Pause, promise.Partition} {
		add("all-hold", f, verdict.Holds, verdict.Holds)
		add("all-break", f, verdict.Oversold, verdict.Drifted)
		if f != promise.Partition {
			add("some-break", f, verdict.Holds, verdict.Holds)
			add("contradicts", f, verdict.Holds, verdict.Oversold)
			add("free", f, "", verdict.Stalled)
		}
	}
	add("some-break", promise.DBKill, verdict.Leaked, verdict.Leaked)
	add("contradicts", promise.DBKill, verdict.Holds, verdict.Inconclusive)
	add("free", promise.DBKill, verdict.Oversold, verdict.Oversold)
	add("one", promise.Rush, verdict.Holds, verdict.Holds)
	add("all-hold", promise.DBFailoverAsync, verdict.Lost, verdict.Lost)
	format, err := report.ByEnding("x.md")
	require.NoError(t, err)
	var page strings.Builder
	require.NoError(t, format.Write(&page, r.Document("shop verify")))
	seen, conditions := readMatrix(t, page.String())
	for strategy, cells := range seen {
		for _, f := range conditions {
			i := slices.IndexFunc(r.Cells, func(c verify.Cell) bool { return c.Strategy == strategy && c.Fault == f })
			want := ""
			if i >= 0 {
				want = string(r.Cells[i].Verdict)
			}
			expect.Equal(t, cells[f], want, strategy, "under", f, "on the page")
		}
	}
	if len(seen) != 6 || len(conditions) != 7 {
		t.Errorf("%d rows, %d conditions; want 6 and 7:\n%s", len(seen), len(conditions), &page)
	}
	for _, want := range []string{
		"The result leaves out `db-failover-async`, which breaks every strategy.\n",
		"| `all-hold` | holds | lost: db-failover-async |  | the other 5 |",
		"| `all-break` | **breaks** | drifted: all 5 |  |  |",
		"| `some-break` | **breaks** | leaked: db-kill |  | the other 4 |",
		"| `contradicts` | **! oversold: rush, units, crash, pause; ? inconclusive: db-kill** |  |  |  |",
		"| `free` | **breaks** | oversold: db-kill | stalled: the other 4 |  |",
	} {
		expect.Contains(t, page.String(), want, "the page")
	}
}
