package lockstrategy_test

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
)

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
		if got := e.Safety(c.database); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.strategy, c.database, got, c.want)
		}
	}
	for _, e := range lockstrategy.All() {
		for _, l := range dialect.Levels() {
			broken := false
			for _, condition := range promise.Played() {
				v := e.Promised(condition, l.Name)
				broken = broken || v != "" && v != verdict.Holds && condition != promise.DBFailoverAsync
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
