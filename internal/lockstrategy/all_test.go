package lockstrategy_test

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// TestPromises: a strategy has a promise under each fault that affects it, or a reason for having
// none.
func TestPromises(t *testing.T) {
	for _, e := range lockstrategy.All() {
		for _, f := range promise.Played() {
			_, promised := e.Promise[f]
			if said := e.NoPromise[f] != ""; lockstrategy.Affects(f, e.Needs) != (promised || said) || promised && said {
				t.Errorf("%s under %s: affects %t, promised %t, said why not %t", e.Name, f, lockstrategy.Affects(f, e.Needs), promised, said)
			}
		}
	}
}

// TestPromisesByDatabase: differences on a database are declared in the strategy's own file. At an
// isolation level where no faults were run, nothing is promised.
func TestPromisesByDatabase(t *testing.T) {
	for _, c := range []struct {
		strategy  string
		condition promise.Condition
		database  string
		want      verdict.Verdict
	}{
		{"transaction", promise.Rush, dialect.MySQL, verdict.Oversold},
		{"transaction", promise.Rush, dialect.SQLite, verdict.Holds},
		{"transaction", promise.Rush, dialect.Postgres, verdict.Oversold},
		{"transaction", promise.Crash, dialect.PostgresRepeatableRead, verdict.Holds},
		{"conditional", promise.Rush, dialect.Postgres, verdict.Holds},
		{"conditional", promise.Rush, dialect.PostgresSerializable, ""},
		{"redis", promise.Rush, dialect.PostgresRepeatableRead, verdict.Holds},
		{"redis", promise.Pause, dialect.Postgres, verdict.Oversold},
		{"redis", promise.Pause, dialect.PostgresRepeatableRead, ""},
		{"for-update", promise.DBNodeKill, dialect.Galera, verdict.Holds},
		{"for-update", promise.DBNodeKill, dialect.MySQL, ""},
		{"fenced", promise.TwoProcesses, dialect.Galera, verdict.Holds},
		{"redis", promise.TwoProcesses, dialect.Galera, ""},
		{"redis", promise.DBNodeKill, dialect.Galera, verdict.Oversold},
		{"watchdog", promise.DBNodeKill, dialect.Galera, ""},
		{"watchdog", promise.SlowSection, dialect.Galera, ""},
		{"redis", promise.SlowSection, dialect.Galera, verdict.Oversold},
		{"named-lock", promise.Rush, dialect.Galera, ""},
	} {
		entry, _ := lockstrategy.ByName(c.strategy)
		expect.Equal(t, entry.Promised(c.condition, c.database), c.want, c.strategy, "under", c.condition, "on", c.database)
	}
}

// TestSafety: a table cell calls a strategy safe only if no condition and no event of the explorer
// is promised to break it.
func TestSafety(t *testing.T) {
	for _, c := range []struct{ strategy, database, want string }{
		{"none", dialect.MySQL, "not safe: rush"},
		{"mutex", dialect.MySQL, "not safe: two-processes"},
		{"setnx-ttl", dialect.MySQL, "not safe: pause"},
		{"setnx-ttl", dialect.PostgresSerializable, "not safe: expire"},
		{"conditional", dialect.MySQL, "safe"},
		{"conditional", dialect.Postgres, "safe"},
		{"conditional", dialect.PostgresSerializable, "no promise"},
		{"coalesced", dialect.PostgresSerializable, "safe in a rush"},
		{"etcd", dialect.Postgres, "not safe: pause"},
		{"etcd", dialect.PostgresSerializable, "no promise"},
	} {
		e, _ := lockstrategy.ByName(c.strategy)
		expect.Equal(t, e.Safety(c.database), c.want, c.strategy, "on", c.database)
	}
	for _, e := range lockstrategy.All() {
		if v := e.Promised(promise.DBFailoverAsync, dialect.Postgres); v == verdict.Holds {
			t.Errorf("%s survives %s, so promise.BreaksAll is wrong", e.Name, promise.DBFailoverAsync)
		}
		for _, l := range dialect.Levels() {
			broken := false
			for _, condition := range promise.Played() {
				v := e.Promised(condition, l.Name)
				broken = broken || v != "" && v != verdict.Holds && !promise.BreaksAll(condition)
			}
			for _, condition := range promise.Explorations() {
				v, _ := e.Explored(condition, l.Name)
				broken = broken || v != "" && v != verdict.Holds
			}
			if safe := e.Safety(l.Name); broken && !strings.HasPrefix(safe, "not safe") {
				t.Errorf("%s on %s: %q, and the catalogue promises a break", e.Name, l.Name, safe)
			}
		}
	}
}
