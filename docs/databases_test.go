package docs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/tier"
)

// TestDatabasesPage compares docs/reference/databases.md with the catalogue.
func TestDatabasesPage(t *testing.T) {
	tier.Test(t, "it starts the shop for the example")
	d := databases{onengine.Deps(enginetest.Embedded(t))}
	golden.Compare(t, "reference/databases.md", page(t, "databases.md", template.FuncMap{"databases": d.table, "topologies": topologies}))
}

// databases writes tables for docs/reference/databases.md. embedded holds the dependencies of a
// strategy on the embedded engine, with SQLite.
type databases struct{ embedded lockstrategy.Deps }

// table returns a table with a column for each pair in columns: a title, and one or more names of
// dialect.Levels, separated by spaces. The rows are the strategies for which one of these levels
// differs from MariaDB.
func (d databases) table(columns ...string) string {
	var b strings.Builder
	titles, flags := "| strategy |", "| *flags* |"
	for pair := range slices.Chunk(columns, 2) {
		var of []string
		for level := range strings.FieldsSeq(pair[1]) {
			of = append(of, quoted(levelFlags(level)))
		}
		titles += " " + pair[0] + " |"
		flags += " " + strings.Join(of, " or ") + " |"
	}
	fmt.Fprintf(&b, "%s\n|---|%s\n%s\n", titles, strings.Repeat("---|", len(columns)/2), flags)
	for _, e := range lockstrategy.All() {
		row, differs := "", false
		for pair := range slices.Chunk(columns, 2) {
			var cells []string
			for level := range strings.FieldsSeq(pair[1]) {
				cell := d.cell(e, level)
				differs = differs || firstWords(cell) != firstWords(d.cell(e, dialect.MySQL))
				cells = append(cells, cell)
			}
			row += fmt.Sprintf(" %s |", strings.Join(slices.Compact(cells), " / "))
		}
		if differs {
			fmt.Fprintf(&b, "| %s |%s\n", strategyLink(e), row)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// firstWords returns a cell without the condition that breaks the strategy.
func firstWords(cell string) string {
	words, _, _ := strings.Cut(cell, ":")
	return words
}

// cell says whether a strategy is safe on a database.
func (d databases) cell(e lockstrategy.Entry, database string) string {
	if e.LackedOn(database) != "" || database == dialect.SQLite && e.Missing(d.embedded) != "" {
		return "not available"
	}
	return safetyCell(e, database)
}

func levelFlags(level string) string {
	switch level {
	case dialect.SQLite:
		return ""
	case dialect.MySQL:
		return strings.TrimSpace(engine.Flags(engine.Local, "", ""))
	}
	return strings.TrimPrefix(strings.TrimSpace(engine.Flags(engine.Local, level, "")), "--engine local ")
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// topologies returns rows with the conditions that break a strategy only under Sentinel or Redis
// Cluster, or only with a single Redis.
func topologies() string {
	var b strings.Builder
	for _, kind := range []string{topology.Sentinel, topology.Cluster} {
		for _, waits := range []bool{false, true} {
			flags := "--local-redis " + kind
			if waits {
				flags += " --redis-wait 1"
			}
			links := map[string][]string{}
			var changes []string
			for _, e := range lockstrategy.All() {
				if !slices.Contains(e.Needs, lockstrategy.NeedsRedis) || waits && !e.Confirms || e.Promise[promise.Rush] != verdict.Holds {
					continue // a strategy that every rush breaks needs no row here
				}
				on := e
				if waits {
					on = e.Confirmed()
				}
				single := slices.DeleteFunc(e.OnRedis(topology.Single).Breaks(dialect.MySQL), func(c promise.Condition) bool {
					return promise.OnRedis(c) == topology.Single // no run with several servers has this condition
				})
				change := difference(single, on.OnRedis(kind).Breaks(dialect.MySQL))
				if change != "" && links[change] == nil {
					changes = append(changes, change)
				}
				links[change] = append(links[change], strategyLink(e))
			}
			for _, change := range changes {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", flags, change, strings.Join(links[change], ", "))
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func joined(sign string, conditions []promise.Condition) string {
	var texts []string
	for _, c := range conditions {
		texts = append(texts, sign+string(c))
	}
	return strings.Join(texts, ", ")
}

// difference lists the conditions that are in only one of two lists: "-" marks those of the first list.
func difference(single, other []promise.Condition) string {
	only := func(in, out []promise.Condition) []promise.Condition {
		return slices.DeleteFunc(slices.Clone(in), func(c promise.Condition) bool { return slices.Contains(out, c) })
	}
	added, removed := joined("+", only(other, single)), joined("-", only(single, other))
	if added == "" || removed == "" {
		return added + removed
	}
	return added + ", " + removed
}
