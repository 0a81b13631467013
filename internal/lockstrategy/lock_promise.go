package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A LockPromise is the promise of the lock itself, whatever happens to stock and records. The zero
// value means: the lock has one holder at a time wherever the strategy holds, is not renewed, and
// only its holder releases it.
type LockPromise struct {
	// SharedUnder lists the conditions under which two buyers may hold the lock although the
	// strategy holds: something other than the lock rejects the late holder's write.
	SharedUnder []promise.Condition

	// Renewed: a running holder keeps the lock for the whole section, while the lock's servers
	// answer.
	Renewed bool

	// FreesAnothers: a release may release the lock of the next holder.
	FreesAnothers bool
}

// Excludes reports whether the lock promises one holder at a time under a condition. It promises
// nothing if there is no lock, or if the strategy is promised to oversell. If the catalogue
// promises nothing about the sales on a database, the lock still keeps the promise of other
// databases. The exception is a lease without renewal that can expire while its holder waits for the
// database. The parameter `database` is a name as in engine.Engine.Database.
func (e Entry) Excludes(c promise.Condition, database string) bool {
	v := e.Promised(c, database)
	if v == "" && !lapses(e, c, database) {
		v = e.Promise[c]
	}
	return e.WaitsFor == WaitLock && v != "" && !v.Keeps(verdict.Oversold) && !slices.Contains(e.Lock.SharedUnder, c)
}

// KeptUnder reports whether a holder keeps the lock to the end of its section under a condition in
// which the holder and the lock's servers stay alive.
func (l LockPromise) KeptUnder(c promise.Condition) bool {
	return l.Renewed && slices.Contains([]promise.Condition{promise.SlowSection, promise.ClientGone, promise.Latency, promise.ClientClock}, c)
}
