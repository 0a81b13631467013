// Package onengine is the one way from an engine to what strategies are built from.
//
// The catalogue does not know how servers are opened, and an engine does not know any
// strategy. This room is the only one that imports both, so that the shop, the
// explorer and the conformance suite wire them alike, and a server that is added to
// the one reaches the other in one place.
package onengine

import (
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
)

// Deps has the connections of e, the default settings and this machine's clock. The
// caller changes what it needs otherwise. The connections are the engine's: they end
// with it.
func Deps(e *engine.Engine) deps.Deps {
	return deps.Deps{
		DB: e.DB, Redis: e.Redis, Redlock: e.Redlock, Zookeeper: e.Zookeeper, Etcd: e.Etcd, Lacks: e.Lacks, Certifies: e.Certifies, Absent: e.Absent,
		Settings: deps.DefaultSettings(), Now: time.Now,
	}
}
