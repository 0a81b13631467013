package lockstrategy_test

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/tier"
)

// seenElsewhere says why only make soak runs an entry on a database, or returns "". A lock outside the
// database wraps the same section on each database, so make test needs only one database.
func seenElsewhere(e *engine.Engine, entry lockstrategy.Entry) string {
	if e.DB.Name() == dialect.Postgres && entry.Leased {
		return "its lock is outside the database, and MariaDB's run covers it"
	}
	return ""
}

// TestConformance: on the embedded engine each test has a database and a Redis of its own, so
// strategies run in parallel. On real servers they run one after the other, since MariaDB counts
// the waiting statements of all its databases together.
func TestConformance(t *testing.T) {
	enginetest.EachCoordinated(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t) // start shared servers now, so that they do not count as a leak
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
					t.Skip(why) // real servers run every strategy: TestEveryStrategyRuns
				}
				tier.Soak(t, seenElsewhere(e, entry))
				lockstrategytest.Exercise(t, entry, open)
			})
		}
	})
}

// TestConformanceOfTopologies runs the strategies that use one Redis behind sentinels and on a
// cluster.
func TestConformanceOfTopologies(t *testing.T) {
	for _, kind := range []string{topology.Sentinel, topology.Cluster} {
		t.Run(kind, func(t *testing.T) {
			tier.Soak(t, "needs a sentinel or a cluster")
			open := func(t *testing.T) *engine.Engine { return enginetest.Redis(t, kind) }
			open(t) // start shared servers now, so that they do not count as a leak
			for _, entry := range lockstrategy.All() {
				if !slices.Contains(entry.Needs, lockstrategy.NeedsRedis) {
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

// TestEveryStrategyRuns: real servers run every strategy of the catalogue.
func TestEveryStrategyRuns(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper and etcd")
	for _, e := range []*engine.Engine{enginetest.Coordinated(t), enginetest.CoordinatedPostgres(t)} {
		for name, why := range lockstrategy.AllMissing(onengine.Deps(e)) {
			t.Errorf("%s on %s: %s", name, e.Server, why)
		}
	}
}
