package lockstrategy

import (
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// DiffersByDatabase reports whether order alone breaks a strategy on one of
// dialect.Levels and not on another. Where nothing is promised there is nothing to compare.
func (e Entry) DiffersByDatabase() bool {
	verdicts := map[verdict.Verdict]bool{}
	for _, l := range dialect.Levels() {
		if v, explored := e.Explored(promise.Explore, l.Name); explored && v != "" {
			verdicts[v] = true
		}
	}
	return len(verdicts) > 1
}

// BrokenBy is the first exploration with an event that breaks a strategy on a database
// which order alone does not, and the verdict: a crash, then a lease that runs out, then
// a Redis that forgets. "" where none does.
//
// Above READ COMMITTED it is the one of READ COMMITTED, where the catalogue says nothing
// of it: a holder that is late has read the stock before its transaction begins, so
// nothing of what it writes is stale to the database. TestAboveReadCommitted explores it.
func (e Entry) BrokenBy(database string) (promise.Condition, verdict.Verdict) {
	if v, _ := e.Explored(promise.Explore, database); v != verdict.Holds {
		return "", ""
	}
	for _, c := range []promise.Condition{promise.ExploreCrash, promise.ExploreExpire, promise.ExploreForget} {
		on := database
		if v, possible := e.Explored(c, database); possible && v == "" && dialect.LevelNamed(database).RefusesStale {
			on = dialect.Kind(database)
		}
		if e.exploredBreaks(c, on) {
			v, _ := e.Explored(c, on)
			return c, v
		}
	}
	return "", ""
}
