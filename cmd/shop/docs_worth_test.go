package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

//go:generate go test -run TestWorthPage -update .

// TestWorthPage: docs/worth.md is the catalogue's.
func TestWorthPage(t *testing.T) {
	const file = "../../docs/worth.md"
	want := worthPage(onengine.Deps(enginetest.Embedded(t)))
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/worth.md is not the catalogue's: run make generate")
	}
}

// worthPage is each strategy on each database. embedded is what the strategies have on
// SQLite: where something is missing there, the cell says what.
func worthPage(embedded lockstrategy.Deps) string {
	var b strings.Builder
	b.WriteString(`<!-- written by go generate from the entries in internal/lockstrategy -->
# What each promise is worth where

What a strategy is worth depends on the database under it. This page has what the catalogue promises on each;
the verdicts that were seen, under every fault, are in [matrix.md](matrix.md) (MariaDB), [PostgreSQL](matrix-postgres.md),
Galera with [three writers](matrix-galera.md) and with [one](matrix-galera-one-writer.md), Redis
[behind sentinels](matrix-sentinel.md) and [in a cluster](matrix-cluster.md).

| a cell says | it means |
|---|---|
| holds | a rush of one process or of two does not break it, nor does a fault that can strike every database server |
| holds: a stale write is refused | the same code is oversold on another database. This one refuses to write a row that has changed since the transaction read it (PostgreSQL: 40001; SQLite: SQLITE_BUSY_SNAPSHOT), and the strategy starts again |
| **oversold** by order alone | two buyers suffice, with nothing wrong |
| holds; **oversold** by expire | it takes an event: ` + "`expire`, all leases run out and no holder notices; `crash`, a buyer dies; `forget`" + `, a Redis loses its keys; or a fault of the matrix. One that breaks it is named; the matrix has the others |
| no promise: stale writes are refused | the strategy does not start again when its write is refused. Buyers are told busy while units are left, or sold out too early; how many is chance. Without a lock elsewhere no order of two buyers' commands sells too much (` + "`TestAboveReadCommitted`" + `) |
| not played under faults | it is promised of rushes, and of every order of two buyers |
| **oversold** by a crowd | on Galera, where no explorer runs: a rush shows it |
| no promise: stale reads | the lock excludes others, and its next holder may be at a node that has not applied yet what the last one has committed. How many write on such a read is chance (` + "`TestGaleraStaleRead`" + ` has one step by step) |

A row's command shows its cells: add the flags of the column. ` + "`shop explore`" + ` runs every order of two buyers' commands
([explorer.md](explorer.md)); what a fault breaks is seen by ` + "`shop verify --strategy NAME --fault FAULT`" + `. Where stale writes are
refused and nothing is promised, ` + "`shop rush --strategy NAME`" + ` shows the units that are left. MariaDB's promises are MySQL's, too.
CockroachDB and YugabyteDB speak PostgreSQL's protocol and were not run, so nothing is said of them. Nor were TiDB, Vitess and MySQL Group
Replication, which speak MySQL's: members of a replication group know nothing of each other's named locks, so ` + "`named-lock`" + ` is refused there.

**Galera** is a cluster of three MariaDB nodes: with three writers each process of the shop goes to another node, with one writer all go to the
same. The explorer does not run there; ` + "`shop rush --processes 2`" + ` and ` + "`shop verify --strategy NAME`" + ` with the flags of the column show its cells.
What the database decides, it decides there, too: two nodes let both ` + "`FOR UPDATE`" + ` in, the second COMMIT is refused (1213), and the strategy starts again.
A lease that is shorter than the cluster's wait for a dead node (5 s unless set) runs out inside a COMMIT: there the plain leases are oversold,
with one writer as with three ([servers](design/servers.md#galera)).

**A failover** is played on PostgreSQL alone, in its matrix. To a replica that each COMMIT has waited for (synchronous, a quorum of one) no
acknowledged sale was lost, in 150 kills of the primary under load. To one that lacks the last commits each strategy loses sales that
buyers were told of, and sells those units again: no lock and no isolation level keeps what the database has lost, on whatever
database that replicates so.
`)
	writeWorth(&b, "Nothing but the database", embedded, true)
	writeWorth(&b, "A lock or a stock elsewhere", embedded, false)
	writeTopologies(&b)
	b.WriteString("\n## Where databases differ\n\nThe same buyers in the same order, side by side:\n\n")
	for _, e := range lockstrategy.All() {
		if lockstrategy.DiffersByDatabase(e) {
			fmt.Fprintf(&b, "- [%[1]s](witnesses/by-database/%[1]s.md)\n", e.Name)
		}
	}
	return b.String()
}

// writeWorth is the table of the strategies that need no other server, or of the rest.
func writeWorth(b *strings.Builder, heading string, embedded lockstrategy.Deps, databaseOnly bool) {
	fmt.Fprintf(b, "\n## %s\n\n| strategy |", heading)
	levels := dialect.Levels()
	for _, l := range levels {
		fmt.Fprintf(b, " %s |", l.Title)
	}
	b.WriteString(" command |\n|---|" + strings.Repeat("---|", len(levels)+1) + "\n| *flags* |")
	for _, l := range levels {
		fmt.Fprintf(b, " %s |", quoted(levelFlags(l.Name)))
	}
	b.WriteString(" |\n")
	for _, e := range lockstrategy.All() {
		if onDatabaseOnly(e) != databaseOnly {
			continue
		}
		fmt.Fprintf(b, "| [`%[1]s`](strategies.md#%[1]s) |", e.Name)
		for _, l := range levels {
			missing := ""
			if l.Name == dialect.SQLite {
				missing = e.Missing(embedded)
			}
			for _, need := range e.Needs {
				missing = cmp.Or(missing, dialect.Lacks(l.Name)[string(need)])
			}
			fmt.Fprintf(b, " %s |", worth(e, l.Name, missing))
		}
		fmt.Fprintf(b, " `%s` |\n", worthCommand(e))
	}
}

// writeTopologies is the table of the strategies that use one Redis, by how that is built.
func writeTopologies(b *strings.Builder) {
	b.WriteString(`
## By how Redis is built

What breaks each strategy that uses one Redis, on MariaDB: every fault, by the verdict that is promised under it. Behind sentinels and on a
cluster the failover is their own. [servers](design/servers.md#redis-sentinel-and-redis-cluster) has the reasons.

`)
	columns := []struct {
		title, flags string
		of           func(lockstrategy.Entry) lockstrategy.Entry
	}{
		{"one server", "", func(e lockstrategy.Entry) lockstrategy.Entry { return e.OnRedis(topology.Single) }},
		{"Sentinel", "--local-redis sentinel", func(e lockstrategy.Entry) lockstrategy.Entry { return e.OnRedis(topology.Sentinel) }},
		{"Sentinel, WAIT", "--local-redis sentinel --redis-wait 1", func(e lockstrategy.Entry) lockstrategy.Entry { return e.Confirmed().OnRedis(topology.Sentinel) }},
		{"Cluster", "--local-redis cluster", func(e lockstrategy.Entry) lockstrategy.Entry { return e.OnRedis(topology.Cluster) }},
		{"Cluster, WAIT", "--local-redis cluster --redis-wait 1", func(e lockstrategy.Entry) lockstrategy.Entry { return e.Confirmed().OnRedis(topology.Cluster) }},
	}
	b.WriteString("| strategy |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n| *flags* |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", quoted(c.flags))
	}
	for _, e := range lockstrategy.All() {
		if !slices.Contains(e.Needs, lockstrategy.NeedsRedis) {
			continue
		}
		fmt.Fprintf(b, "\n| [`%[1]s`](strategies.md#%[1]s) |", e.Name)
		for _, c := range columns {
			text := brokenBy(c.of(e))
			if strings.HasSuffix(c.title, "WAIT") && !e.Confirms {
				text = "it does not wait for replicas"
			}
			fmt.Fprintf(b, " %s |", text)
		}
	}
	b.WriteString("\n\nA cell is shown by `shop verify --engine local --strategy NAME` with the flags of its column.\n")
}

// brokenBy are the conditions that break a strategy on MariaDB, by verdict.
func brokenBy(e lockstrategy.Entry) string {
	by := map[verdict.Verdict][]string{}
	for _, c := range promise.Played() {
		if v := e.Promised(c, dialect.MySQL); v != "" && v != verdict.Holds {
			by[v] = append(by[v], string(c))
		}
	}
	if len(by) == 0 {
		return "holds"
	}
	var texts []string
	for _, v := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, "**"+string(v)+"** by "+strings.Join(by[v], ", "))
	}
	return strings.Join(texts, "; ")
}

// onDatabaseOnly reports whether a strategy needs no server but the database's.
func onDatabaseOnly(e lockstrategy.Entry) bool {
	return !slices.ContainsFunc(e.Needs, func(n lockstrategy.Need) bool { return n != lockstrategy.NeedsNamedLocks })
}

// levelFlags open the database with a command.
func levelFlags(level string) string {
	switch level {
	case dialect.SQLite:
		return ""
	case dialect.MySQL:
		return strings.TrimSpace(engine.Flags(engine.Local, "", ""))
	}
	return strings.TrimSpace(engine.Flags(engine.Local, level, ""))
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// worth is what the promise of e comes to on a database; missing is what e lacks there.
func worth(e lockstrategy.Entry, database, missing string) string {
	if missing != "" {
		why, _, _ := strings.Cut(missing, ";")
		return "not available: " + why
	}
	one, two := e.Promised(promise.Rush, database), e.Promised(promise.TwoProcesses, database)
	switch {
	case two == "" && one == verdict.Holds:
		return "holds in one process; with two " + noPromise(database)
	case two == "":
		return noPromise(database)
	case two != verdict.Holds && one == verdict.Holds:
		return "holds in one process; **" + string(two) + "** by two"
	case two != verdict.Holds && dialect.WhyUnexplored(database) != "":
		return "**" + string(two) + "** by a crowd"
	case two != verdict.Holds:
		return "**" + string(two) + "** by order alone"
	}
	text := "holds"
	if e.Promised(promise.TwoProcesses, dialect.MySQL) != verdict.Holds {
		text += ": a stale write is refused"
	}
	if c, v := firstBreak(e, database); c != "" {
		return text + "; **" + string(v) + "** by " + strings.TrimPrefix(string(c), "explore-")
	}
	if e.Promised(promise.Crash, database) == "" {
		return text + "; not played under faults"
	}
	return text
}

// noPromise says why there is none.
func noPromise(database string) string {
	if dialect.LevelNamed(database).RefusesStale {
		return "no promise: stale writes are refused"
	}
	if database == dialect.Galera {
		return "no promise: stale reads"
	}
	return "no promise"
}

// firstBreak is the first condition that breaks a strategy which order alone does not
// break: one of the explorer's if there is one, since that needs no luck. A fault of one
// database alone is none: the others' cells would not be of the same question.
func firstBreak(e lockstrategy.Entry, database string) (promise.Condition, verdict.Verdict) {
	if c, v := lockstrategy.BrokenBy(e, database); c != "" {
		return c, v
	}
	for _, c := range promise.Played() {
		if v := e.Promised(c, database); promise.On(c) == "" && v != "" && v != verdict.Holds {
			return c, v
		}
	}
	return "", ""
}

// worthCommand shows the row's cells, with the flags of the column.
func worthCommand(e lockstrategy.Entry) string {
	c, _ := firstBreak(e, dialect.MySQL)
	switch event, explored := strings.CutPrefix(string(c), "explore-"); {
	case explore.Ungated(e) != "" && c != "":
		return "shop verify --strategy " + e.Name + " --fault " + string(c)
	case explore.Ungated(e) != "":
		return "shop verify --strategy " + e.Name
	case explored:
		return "shop explore " + e.Name + " --events " + event + " --bound 1"
	}
	return "shop explore " + e.Name
}
