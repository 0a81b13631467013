// Package onengine connects lock strategies to an engine: the database and the lock servers, with open
// connections.
//
// The catalogue does not know how servers are opened, and an engine knows no strategy. Only this
// package imports both. So the shop, the explorer and the conformance suite build strategies in the
// same way, and a new server is connected in one place.
package onengine

import (
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
)

// Deps returns the connections of the engine e, the default settings and this machine's clock. The caller
// may change any field. The engine owns the connections and closes them.
func Deps(e *engine.Engine) deps.Deps {
	return deps.Deps{
		DB: e.DB, Redis: e.Redis, Redlock: e.Redlock, Zookeeper: e.Zookeeper, Etcd: e.Etcd, Lacks: e.Lacks, Certifies: e.Certifies, WhyMissing: e.WhyMissing,
		Settings: deps.DefaultSettings(), Now: time.Now,
	}
}
