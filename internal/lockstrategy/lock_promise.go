package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A LockPromise is the promise of the lock itself, independent of stock and records. The zero value means
// that the lock has one holder at a time wherever the strategy keeps the stock right. It also means that the
// lock is not renewed, and that only its holder releases it.
type LockPromise struct {
	// SharedUnder lists the conditions, such as faults, under which two buyers may hold the lock. The stock
	// still stays right, since something other than the lock rejects the late holder's write.
	SharedUnder []promise.Condition

	// Renewed: while the lock's servers answer, a running holder keeps the lock for its whole critical section.
	Renewed bool

	// FreesAnothers: a release may release the lock of the next holder.
	FreesAnothers bool
}

// Excludes reports whether the lock promises one holder at a time under a condition. It returns false if
// there is no lock, or if the strategy is promised to oversell. If the catalogue promises nothing about the
// sales on a database, the lock's promise on other databases applies. The exception is a lease without
// renewal: it can expire while its holder waits for the database. The parameter `database` is a name as in
// engine.Engine.Database.
func (e Entry) Excludes(c promise.Condition, database string) bool {
	v := e.Promised(c, database)
	if v == "" && !lapses(e, c, database) {
		v = e.Promise[c]
	}
	return e.WaitsFor == WaitLock && v != "" && !v.Keeps(verdict.Oversold) && !slices.Contains(e.Lock.SharedUnder, c)
}

// KeptUnder reports whether a holder keeps the lock to the end of its critical section under the condition c.
// It returns false for conditions in which the holder or the lock's servers may die.
func (l LockPromise) KeptUnder(c promise.Condition) bool {
	return l.Renewed && slices.Contains([]promise.Condition{promise.SlowSection, promise.ClientGone, promise.Latency, promise.ClientClock}, c)
}
