package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

// TestDatabasesPage compares docs/reference/databases.md with the catalogue. With -update it writes
// the page.
func TestDatabasesPage(t *testing.T) {
	comparePage(t, "docs/reference/databases.md", databasesPage(t, onengine.Deps(enginetest.Embedded(t))))
}

// databasesPage returns the text of docs/reference/databases.md. embedded holds the servers that a
// strategy finds on the embedded engine, where the database is SQLite.
func databasesPage(t *testing.T, embedded lockstrategy.Deps) string {
	var b strings.Builder
	b.WriteString(generated + `# Strategies by database

This page tells a back-end developer on which databases a lock strategy keeps the stock right.

- **safe**: no rush and no fault that can be injected on this database breaks the strategy.
- **safe in a rush**: no rush breaks it; the faults were not injected on this database.
- **not safe**: the named [condition](faults.md) breaks it.
- **no promise**: chance decides whether a run breaks it, or a fault breaks it elsewhere and was not injected here.
- **not available**: the database or the engine lacks what the strategy needs.

The first two tables list only the strategies whose promise differs between databases. See [all strategies](strategies.md) for the others.
MariaDB's column also applies to MySQL. CockroachDB, YugabyteDB, TiDB, Vitess and MySQL Group Replication were not tested.

## One database server

The flags start a private server; ` + "`--local-db` needs `--engine local`" + ` too. "Above READ COMMITTED" means REPEATABLE READ and SERIALIZABLE.

`)
	above := []string{dialect.PostgresRepeatableRead, dialect.PostgresSerializable}
	writeDatabases(&b, embedded, []databaseColumn{
		{"SQLite", []string{dialect.SQLite}},
		{"MariaDB; PostgreSQL at READ COMMITTED", []string{dialect.MySQL, dialect.Postgres}},
		{"PostgreSQL, above READ COMMITTED", above},
	})
	b.WriteString(`
**Stale writes.** SQLite, and PostgreSQL above READ COMMITTED, refuse to write a row that has changed since the transaction read it.
` + "`transaction`" + ` starts again after this error, so it is safe there, although
the same code oversells on MariaDB. ` + "`queue`, `for-update`, `conditional`, `check-after`, `redis-watch` and `redis-decr`" + ` do not start again: they
answer some buyers "busy" while units are left. The number of such buyers is chance, hence "no promise".

On SQLite, no interleaving of two buyers breaks ` + "`transaction`" + `. The [same interleavings](witnesses/by-database/transaction.md) break it on MariaDB.

` + exampleOf(t, "explore transaction --format mermaid") + `
## Galera

A Galera cluster has three MariaDB nodes, and each process of the shop uses a node of its own. The table lists only the strategies whose
promise differs from one MariaDB server.

`)
	writeDatabases(&b, embedded, []databaseColumn{
		{"MariaDB", []string{dialect.MySQL}},
		{"Galera", []string{dialect.Galera}},
	})
	b.WriteString(`
**Two writers of one row.** Both nodes let a ` + "`SELECT ... FOR UPDATE`" + ` in. The first COMMIT wins. The cluster refuses the second with error
1213, and the SQL strategies start again.

**Stale reads.** After a lock changes hands, the next holder may read from a node that has not applied the previous sale yet. On
Galera the catalogue therefore promises nothing for locks outside the database. A fencing token helps: its UPDATE comes before the
read, and the cluster checks that UPDATE for conflicts.

**A dead node** delays every COMMIT until the other nodes expel it (5 seconds by default). A shorter lease that is not renewed
expires meanwhile, and the next holder oversells.

## Failover of the database

An asynchronous replica may lack the last commits (` + "`db-failover-async`" + `). After a failover to it, every strategy loses acknowledged sales
and sells those units again. No lock and no isolation level prevents that. A synchronous replica of
PostgreSQL lost none.

`)
	writeTopologies(&b)
	return b.String()
}

// A databaseColumn is a column of a table. Its levels must agree in each row.
type databaseColumn struct {
	title  string
	levels []string // of dialect.Levels
}

// writeDatabases writes a table with a column for each database. Its rows are the strategies that are
// safe on one of these databases, or on MariaDB, and not on another.
func writeDatabases(b *strings.Builder, embedded lockstrategy.Deps, columns []databaseColumn) {
	b.WriteString("| strategy |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n| *flags* |")
	for _, c := range columns {
		var flags []string
		for _, l := range c.levels {
			flags = append(flags, quoted(levelFlags(l)))
		}
		fmt.Fprintf(b, " %s |", strings.Join(flags, " or "))
	}
	b.WriteString("\n")
	for _, e := range lockstrategy.All() {
		row, differs := "", false
		for _, c := range columns {
			var cells []string
			for _, l := range c.levels {
				cell := databaseCell(e, l, embedded)
				differs = differs || firstWords(cell) != firstWords(databaseCell(e, dialect.MySQL, embedded))
				cells = append(cells, cell)
			}
			row += fmt.Sprintf(" %s |", strings.Join(slices.Compact(cells), " / "))
		}
		if differs {
			fmt.Fprintf(b, "| %s |%s\n", strategyLink("strategies/", e), row)
		}
	}
}

// firstWords returns a cell without the condition that breaks the strategy.
func firstWords(cell string) string {
	words, _, _ := strings.Cut(cell, ":")
	return words
}

// databaseCell says whether a strategy is safe on a database.
func databaseCell(e lockstrategy.Entry, database string, embedded lockstrategy.Deps) string {
	if e.LackedOn(database) != "" || database == dialect.SQLite && e.Missing(embedded) != "" {
		return "not available"
	}
	return safetyCell(e, database)
}

// levelFlags returns the flags that open the database with a command.
func levelFlags(level string) string {
	switch level {
	case dialect.SQLite:
		return ""
	case dialect.MySQL:
		return strings.TrimSpace(engine.Flags(engine.Local, "", ""))
	}
	return strings.TrimPrefix(strings.TrimSpace(engine.Flags(engine.Local, level, "")), "--engine local ")
}

// quoted returns code in Markdown, or "" for no code.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// writeTopologies writes a table of the conditions that break a strategy only under Sentinel or Redis
// Cluster, or only with a single Redis.
func writeTopologies(b *strings.Builder) {
	b.WriteString(`## Redis by topology

Sentinel and Redis Cluster change which conditions break a strategy on MariaDB: "+" marks an added condition, "-" a removed one.
Compare with the conditions of a single server in [all strategies](strategies.md). With ` + "`--redis-wait 1`" + `, a lock counts as granted
only after a replica has it.

| flags | change | strategies |
|---|---|---|
`)
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
					continue // one that every rush breaks is also broken here
				}
				on := e
				if waits {
					on = e.Confirmed()
				}
				change := difference(e.OnRedis(topology.Single).Breaks(dialect.MySQL), on.OnRedis(kind).Breaks(dialect.MySQL))
				if change != "" && links[change] == nil {
					changes = append(changes, change)
				}
				links[change] = append(links[change], strategyLink("strategies/", e))
			}
			for _, change := range changes {
				fmt.Fprintf(b, "| `%s` | %s | %s |\n", flags, change, strings.Join(links[change], ", "))
			}
		}
	}
}

// joined lists conditions with a sign before each.
func joined(sign string, conditions []promise.Condition) string {
	var texts []string
	for _, c := range conditions {
		texts = append(texts, sign+string(c))
	}
	return strings.Join(texts, ", ")
}

// difference lists the conditions that only one of two topologies has.
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
