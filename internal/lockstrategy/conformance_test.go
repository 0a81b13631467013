package lockstrategy_test

import (
	"os"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
)

// apart says why an entry is not run on a database, unless OVERSELL_SOAK is set; "" where
// it is. A lock that is kept elsewhere wraps the same section on each database.
func apart(e *engine.Engine, entry lockstrategy.Entry) string {
	if e.DB.Name() == dialect.Postgres && entry.Leased && os.Getenv("OVERSELL_SOAK") == "" {
		return "its lock is kept elsewhere, and MariaDB's run has shown it; make soak, or OVERSELL_SOAK=1, runs it"
	}
	return ""
}

// TestConformance: on the embedded engine each test has a database and a Redis of its
// own, so strategies run side by side. On real servers they run one after the other:
// MariaDB counts the waiting statements of all its databases together.
func TestConformance(t *testing.T) {
	enginetest.EachCoordinated(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t) // servers that tests share start now and are no leak later
		alone := e.Name != engine.Embedded
		if !alone {
			lockstrategytest.NoLeaks(t)
		}
		for _, entry := range lockstrategy.All() {
			t.Run(entry.Name, func(t *testing.T) {
				if alone {
					lockstrategytest.NoLeaks(t)
				} else {
					t.Parallel()
				}
				if why := entry.Missing(onengine.Deps(e)); why != "" {
					t.Skip(why) // on real servers none is left out: TestEveryStrategyRuns
				}
				if why := apart(e, entry); why != "" {
					t.Skip(why)
				}
				lockstrategytest.Exercise(t, entry, open)
			})
		}
	})
}

// TestConformanceOfTopologies: the strategies that use one Redis, where that is a primary
// behind sentinels, and a cluster. make test has those that differ on a cluster: they send
// messages, or scripts with several keys.
func TestConformanceOfTopologies(t *testing.T) {
	soak := os.Getenv("OVERSELL_SOAK") != ""
	differs := func(e lockstrategy.Entry) bool {
		return e.WritesLater || slices.ContainsFunc(e.Scripts, func(s redisscript.Description) bool { return s.Channel != nil })
	}
	for _, kind := range []string{topology.Sentinel, topology.Cluster} {
		t.Run(kind, func(t *testing.T) {
			if kind == topology.Sentinel && !soak {
				t.Skip("to a strategy it is one server; make soak, or OVERSELL_SOAK=1, runs it")
			}
			open := func(t *testing.T) *engine.Engine { return enginetest.Redis(t, kind) }
			open(t) // servers that tests share start now and are no leak later
			for _, entry := range lockstrategy.All() {
				if !slices.Contains(entry.Needs, lockstrategy.NeedsRedis) || !soak && !differs(entry) {
					continue
				}
				t.Run(entry.Name, func(t *testing.T) {
					lockstrategytest.NoLeaks(t)
					lockstrategytest.Exercise(t, entry, open)
				})
			}
		})
	}
}

// TestEveryStrategyRuns: on real servers no strategy of the catalogue is left out.
func TestEveryStrategyRuns(t *testing.T) {
	for _, e := range []*engine.Engine{enginetest.Coordinated(t), enginetest.CoordinatedPostgres(t)} {
		for name, why := range lockstrategy.AllMissing(onengine.Deps(e)) {
			t.Errorf("%s on %s: %s", name, e.Server, why)
		}
	}
}
