package lockstrategy

import (
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// DiffersByDatabase reports whether the strategy breaks on one of the databases and isolation levels of
// dialect.Levels, and holds on another. It looks at searches without any event, such as a crash. It ignores
// a database for which the catalogue promises neither.
func DiffersByDatabase(e Entry) bool {
	verdicts := map[verdict.Verdict]bool{}
	for _, l := range dialect.Levels() {
		if v, explored := e.Explored(promise.Explore, l.Name); explored && v != "" {
			verdicts[v] = true
		}
	}
	return len(verdicts) > 1
}

// BrokenBy returns the first event that breaks a strategy in an exploration (a search of all interleavings)
// on a database, and the verdict. It tries a crash, then an expired lease, then a Redis that loses its
// keys. It returns "" if none of them breaks the strategy, or if the strategy breaks without any event.
//
// Above READ COMMITTED the catalogue may promise nothing. BrokenBy then uses the promise at READ COMMITTED.
// A holder whose lease has expired read the stock before its transaction began, so no isolation level
// refuses its write. TestAboveReadCommitted checks this.
func BrokenBy(e Entry, database string) (promise.Condition, verdict.Verdict) {
	if v, _ := e.Explored(promise.Explore, database); v != verdict.Holds {
		return "", ""
	}
	for _, c := range []promise.Condition{promise.ExploreCrash, promise.ExploreExpire, promise.ExploreForget} {
		on := database
		if v, possible := e.Explored(c, database); possible && v == "" && dialect.LevelNamed(database).RefusesStale {
			on = dialect.Kind(database)
		}
		if exploredBreaks(e, c, on) {
			v, _ := e.Explored(c, on)
			return c, v
		}
	}
	return "", ""
}
