package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
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

// TestMatrixPage: docs/matrix.md, of MariaDB, and each docs/matrix-DATABASE.md is a full
// run of this catalogue, in which every cell was as promised. make verify writes them.
// Under -short, which needs no server, what was not played yet is skipped; what was
// played must be as promised.
func TestMatrixPage(t *testing.T) {
	files, err := filepath.Glob("../../docs/matrix*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range matrixPages {
		at := slices.Index(files, "../../docs/"+page.file)
		if at < 0 {
			t.Errorf("there is no docs/%s", page.file)
			continue
		}
		files = slices.Delete(files, at, at+1)
		t.Run(page.file, func(t *testing.T) { testMatrixPage(t, page) })
	}
	if len(files) > 0 {
		t.Errorf("not compared with any promise: %s", files)
	}
}

// A matrixPage is a file of docs that make verify writes, and the servers of its run.
type matrixPage struct{ file, database, redis string }

var matrixPages = []matrixPage{
	{"matrix.md", dialect.MySQL, topology.Single},
	{"matrix-postgres.md", "postgres", topology.Single},
	{"matrix-galera.md", dialect.Galera, topology.Single},
	{"matrix-galera-one-writer.md", dialect.GaleraOneWriter, topology.Single},
	{"matrix-sentinel.md", dialect.MySQL, topology.Sentinel},
	{"matrix-cluster.md", dialect.MySQL, topology.Cluster},
}

// explored tells whether the explorer plays on the page's servers.
func (p matrixPage) explored() bool {
	return p.redis == topology.Single && dialect.Kind(p.database) != dialect.Galera
}

// testMatrixPage compares the page of a run with the promises for its servers.
func testMatrixPage(t *testing.T, page matrixPage) {
	database := page.database
	text, err := os.ReadFile("../../docs/" + page.file)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(string(text), "\n")
	head := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "| strategy |") })
	if head < 0 {
		t.Fatal("it has no matrix")
	}
	columns := strings.Split(rows[head], "|")
	played := slices.DeleteFunc(promise.Played(), func(f promise.Condition) bool {
		on, redis := promise.On(f), promise.OnRedis(f)
		return on != "" && on != dialect.Kind(database) || redis != "" && redis != page.redis ||
			!page.explored() && slices.Contains(promise.Explorations(), f)
	})
	for _, f := range played {
		if matrixColumn(columns, f) < 0 {
			t.Run(string(f), func(t *testing.T) { notPlayed(t, "column for "+string(f)) })
		}
	}
	for _, e := range lockstrategy.All() {
		e = e.OnRedis(page.redis)
		if e.LackedOn(database) != "" {
			continue // the page says why
		}
		t.Run(e.Name, func(t *testing.T) {
			i := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "| `"+e.Name+"` |") })
			if i < 0 {
				notPlayed(t, "row for "+e.Name)
			}
			cells := strings.Split(rows[i], "|")
			for _, f := range played {
				at := matrixColumn(columns, f)
				if at < 0 {
					continue // the column's own test says so
				}
				if at >= len(cells) {
					t.Fatalf("the row for %s ends before %s: run make verify", e.Name, f)
				}
				shown := verdict.Verdict(strings.TrimSpace(cells[at]))
				if promised := e.Promised(f, database); promised != "" && !promised.Keeps(shown) || lockstrategy.Strikes(f, e.Needs) == (shown == "") {
					t.Errorf("%s under %s: promised %q, the page has %q: run make verify", e.Name, f, promised, shown)
				}
			}
		})
	}
}

// matrixColumn is where a condition stands in a matrix; -1 where it does not.
func matrixColumn(columns []string, c promise.Condition) int {
	return slices.IndexFunc(columns, func(column string) bool { return strings.TrimSpace(column) == string(c) })
}

// notPlayed ends the test of what a matrix lacks.
func notPlayed(t *testing.T, what string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("the page has no %s: not yet played: run make verify", what)
	}
	t.Fatalf("the page has no %s: run make verify", what)
}
