package lockstrategy

import (
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// DiffersByDatabase reports whether order alone breaks a strategy on one of dialect.Levels and not
// on another. A database for which nothing is promised is not compared.
func DiffersByDatabase(e Entry) bool {
	verdicts := map[verdict.Verdict]bool{}
	for _, l := range dialect.Levels() {
		if v, explored := e.Explored(promise.Explore, l.Name); explored && v != "" {
			verdicts[v] = true
		}
	}
	return len(verdicts) > 1
}

// BrokenBy returns the first exploration with an event that breaks a strategy on a database, and
// the verdict: a crash, then a lease that runs out, then a Redis that forgets. It returns "" if
// none does, or if order alone breaks the strategy.
//
// Above READ COMMITTED, if the catalogue says nothing, it is the exploration at READ COMMITTED: a
// late holder has read the stock before its transaction begins, so nothing that it writes is stale
// to the database. TestAboveReadCommitted explores it.
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
