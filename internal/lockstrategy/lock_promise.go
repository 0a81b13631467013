package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A LockPromise is what a strategy promises of its lock by itself, whatever stock and
// records say. The zero value is that of a lock that has one holder at a time wherever
// the strategy holds, that is not renewed, and that only its holder frees.
type LockPromise struct {
	// SharedUnder lists where two may hold it at once though the strategy holds: the late
	// one is kept from writing by something else than the lock.
	SharedUnder []promise.Condition

	// Renewed: a holder that runs on keeps the lock however long its section takes, while
	// the lock's servers answer.
	Renewed bool

	// FreesAnothers: a release may free the lock of the next holder.
	FreesAnothers bool
}

// Excludes reports whether the lock promises that nobody comes in beside a holder. There
// is no such promise without a lock, nor where the strategy is promised to sell twice.
// Where nothing is promised of the sales on a database, its lock is the same as on the others,
// unless the database may keep a holder waiting beyond a lease that nobody renews.
// database is as engine.Engine.Database names it.
func (e Entry) Excludes(c promise.Condition, database string) bool {
	v := e.Promised(c, database)
	if v == "" && !lapses(e, c, database) {
		v = e.Promise[c]
	}
	return e.WaitsFor == ALock && v != "" && !v.Keeps(verdict.Oversold) && !slices.Contains(e.Lock.SharedUnder, c)
}

// KeptUnder reports whether a holder keeps the lock to the end of its section under a condition:
// the holder lives, and so do the lock's servers.
func (l LockPromise) KeptUnder(c promise.Condition) bool {
	return l.Renewed && slices.Contains([]promise.Condition{promise.SlowSection, promise.ClientGone, promise.Latency}, c)
}
