package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/verdict"
)

// Strikes tells whether a condition of promise.Played strikes what a strategy with
// these needs uses.
func Strikes(c promise.Condition, needs []Need) bool {
	has := func(servers ...Need) bool {
		return slices.ContainsFunc(needs, func(n Need) bool { return slices.Contains(servers, n) })
	}
	switch c {
	case promise.RedisRestart, promise.RedisFailover:
		return has(NeedsRedis)
	case promise.NodeRestart, promise.NodesDown:
		return has(NeedsRedlock)
	case promise.ClockJump:
		return has(NeedsRedis, NeedsRedlock)
	case promise.Latency, promise.Partition:
		return has(NeedsRedis, NeedsRedlock, NeedsZookeeper, NeedsEtcd)
	}
	return true
}

// holdsBut is the promise of an entry: it holds under each condition that strikes
// what it uses, but for those in breaks. "" in breaks is no promise.
//
// No promise is guessed: shop verify --engine local shows each, and docs/matrix.md
// is what it has shown.
func holdsBut(needs []Need, breaks promise.Promise) promise.Promise {
	p := promise.Promise{}
	for _, c := range promise.Played() {
		if !Strikes(c, needs) {
			continue
		}
		v, ok := breaks[c]
		switch {
		case !ok:
			p[c] = verdict.Holds
		case v != "":
			p[c] = v
		}
	}
	return p
}

// Promised is the verdict promised under a condition on a database, "mysql" or
// "sqlite"; "" where the catalogue makes no promise. An entry without any, such
// as one that was just added, is expected to hold.
func (e Entry) Promised(c promise.Condition, database string) verdict.Verdict {
	if e.Promise == nil {
		return verdict.Holds
	}
	if v, ok := e.PromiseSQLite[c]; ok && database == "sqlite" {
		return v
	}
	return e.Promise[c]
}

// Explored is the verdict that an exploration of two buyers and one unit must
// come to on a database, and whether there is one to make. What breaks by order
// alone is not asked about events. "" where the catalogue makes no promise.
//
// It follows from the promises under faults that do the same to a strategy: two
// processes, a pause beyond the lease, the holder's crash, a Redis that comes
// back empty. Two differ, since an event comes at any step and the fault only
// while the holder is in its section: between the two commands of setnx-expire a
// crash locks for ever, and between the first two of redis-decr a counter that is
// forgotten refuses everybody.
func (e Entry) Explored(c promise.Condition, database string) (expected verdict.Verdict, possible bool) {
	if slices.Contains(e.Needs, NeedsZookeeper) || slices.Contains(e.Needs, NeedsEtcd) {
		return "", false // the explorer has gates for SQL and Redis
	}
	if c == promise.Explore {
		return e.Promised(promise.TwoProcesses, database), true
	}
	if e.Promised(promise.TwoProcesses, database) != verdict.Holds {
		return "", false
	}
	switch {
	case c == promise.ExploreCrash && e.Name == "setnx-expire":
		return verdict.Stalled, true
	case c == promise.ExploreForget && e.Name == "redis-decr":
		return verdict.Leaked, true
	case c == promise.ExploreCrash:
		return e.Promised(promise.Crash, database), true
	case c == promise.ExploreExpire && e.leased():
		return e.Promised(promise.Pause, database), true
	case c == promise.ExploreForget && Strikes(promise.RedisRestart, e.Needs):
		return e.Promised(promise.RedisRestart, database), true
	case c == promise.ExploreForget && Strikes(promise.NodeRestart, e.Needs):
		return e.Promised(promise.NodeRestart, database), true
	}
	return "", false
}

// leased: what it locks with runs out by itself.
func (e Entry) leased() bool {
	return len(e.Needs) > 0 && e.Promise[promise.Pause] == verdict.Oversold || e.Name == "fenced" // the late holder is refused
}
