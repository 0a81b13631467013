package lockstrategy

import (
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// Strikes reports whether a condition of promise.Played strikes what a strategy with
// these needs uses.
func Strikes(c promise.Condition, needs []Need) bool {
	servers := promise.Struck(c)
	return servers == nil || slices.ContainsFunc(needs, func(n Need) bool { return slices.Contains(servers, string(n)) })
}

// holds promises that the entry holds under each condition that strikes what it
// uses.
func (e Entry) holds() Entry { return e.holdsBut(nil) }

// holdsBut promises what holds does, except for the verdicts in breaks. "" in breaks makes no
// promise. No promise is guessed: shop verify --engine local shows each, and docs/reference/matrix
// has what each showed.
func (e Entry) holdsBut(breaks promise.Promise) Entry {
	if e.Needs == nil {
		e.Needs = []Need{}
	}
	e.Promise = promise.Promise{}
	for _, c := range promise.Played() {
		if !Strikes(c, e.Needs) {
			continue
		}
		v, ok := breaks[c]
		switch {
		case !ok:
			e.Promise[c] = atBest(c, verdict.Holds)
		case v != "":
			e.Promise[c] = atBest(c, v)
		}
	}
	return e
}

// atBest is v, but where nothing helps: no lock, and no isolation level, keeps what the
// database has lost.
func atBest(c promise.Condition, v verdict.Verdict) verdict.Verdict {
	if c == promise.DBFailoverAsync && v != "" {
		return verdict.Lost
	}
	return v
}

// on promises v under these conditions on a database, where they strike; "" is no
// promise.
func (e Entry) on(database string, conditions []promise.Condition, v verdict.Verdict) Entry {
	differs := promise.Promise{}
	maps.Copy(differs, e.PromiseOn[database])
	for _, c := range conditions {
		if Strikes(c, e.Needs) {
			differs[c] = atBest(c, v)
		}
	}
	all := maps.Clone(e.PromiseOn)
	if all == nil {
		all = map[string]promise.Promise{}
	}
	all[database] = differs
	e.PromiseOn = all
	return e
}

// aboveReadCommitted promises v under these conditions where the database refuses a stale
// write with 40001: PostgreSQL at REPEATABLE READ and SERIALIZABLE.
func (e Entry) aboveReadCommitted(conditions []promise.Condition, v verdict.Verdict) Entry {
	return e.on(dialect.PostgresRepeatableRead, conditions, v).on(dialect.PostgresSerializable, conditions, v)
}

// leaseBreaks is where a lease breaks that runs out under a holder that does not
// know it. Its Redis may forget it, too.
func leaseBreaks() promise.Promise {
	p := renewedLeaseBreaks()
	p[promise.SlowSection], p[promise.Partition] = verdict.Oversold, verdict.Oversold
	return p
}

// renewedLeaseBreaks is where a lease breaks that is renewed while its process runs,
// and given up in time when it cannot be.
func renewedLeaseBreaks() promise.Promise {
	return promise.Promise{
		promise.Pause: verdict.Oversold, promise.RedisRestart: verdict.Oversold,
		promise.RedisFailover: verdict.Oversold, promise.PrimaryPartition: verdict.Oversold, promise.ClockJump: verdict.Oversold,
	}
}

// OnRedis is the entry with its promises as they are where Redis is built in that way,
// of package topology.
func (e Entry) OnRedis(kind string) Entry {
	e.redis = kind
	return e
}

// Confirmed is the entry with its promises as they are when a grant counts only if replicas
// have it: then the one that is elected has the lock, too.
func (e Entry) Confirmed() Entry {
	if e.Confirms {
		e.Promise = maps.Clone(e.Promise)
		e.Promise[promise.RedisFailover] = verdict.Holds
		e.Lock.SharedUnder = slices.DeleteFunc(slices.Clone(e.Lock.SharedUnder), func(c promise.Condition) bool { return c == promise.RedisFailover })
	}
	return e
}

// Promised is the verdict promised under a condition on a database, as
// engine.Engine.Database names it; "" where the catalogue makes no promise. An entry without any, such
// as one that was just added, is expected to hold.
func (e Entry) Promised(c promise.Condition, database string) verdict.Verdict {
	if e.Promise == nil {
		return verdict.Holds
	}
	if on := promise.On(c); on != "" && dialect.Kind(database) != on {
		return "" // it cannot be played there
	}
	if e.LackedOn(database) != "" {
		return ""
	}
	if on := promise.OnRedis(c); on != "" && e.redis != on {
		return ""
	}
	if v, ok := e.PromiseOn[database][c]; ok {
		return v
	}
	if dialect.LevelNamed(database).RefusesStale && !slices.Contains(promise.Crowds(), c) {
		return "" // the faults have not been played there
	}
	return e.Promise[c]
}

// BreaksUnder names the conditions under which the catalogue promises a break on a database, in
// the order of Played.
func (e Entry) BreaksUnder(database string) (broken []string) {
	for _, c := range promise.Played() {
		if v := e.Promised(c, database); v != "" && v != verdict.Holds {
			broken = append(broken, string(c))
		}
	}
	return broken
}

// LackedOn says what the strategy needs and a database lacks, as far as its name says so.
func (e Entry) LackedOn(database string) string {
	lacks := dialect.Lacks(database)
	for _, need := range e.Needs {
		if why := lacks[string(need)]; why != "" {
			return why
		}
	}
	return ""
}

// WhyNoPromise says why Promised is "" under a condition; "" where it is not.
func (e Entry) WhyNoPromise(c promise.Condition, database string) string {
	switch {
	case e.Promised(c, database) != "":
		return ""
	case dialect.Kind(database) == dialect.Galera && e.NoPromise[c] == "":
		return whyNotOnGalera(e, c, database)
	case e.NoPromise[c] != "" || !dialect.LevelNamed(database).RefusesStale:
		return e.NoPromise[c]
	case slices.Contains(promise.Crowds(), c):
		return "a stale write is refused at this isolation level and the strategy does not start again; how many buyers notice is chance"
	}
	return "it has not been played at this isolation level"
}

// Explored is the verdict that an exploration of two buyers and one unit must
// come to on a database, and whether there is one to make. What breaks by order
// alone is not explored with events. "" where the catalogue makes no promise.
//
// It follows from the promises under faults that do the same to a strategy: two
// processes, a pause beyond the lease, the holder's crash, a Redis that comes
// back empty. A fault strikes a holder that is in its section, and the explorer's
// events come at any step: Traits.ExploredAs has the strategies for which this makes a difference.
func (e Entry) Explored(c promise.Condition, database string) (expected verdict.Verdict, possible bool) {
	if slices.Contains(e.Needs, NeedsZookeeper) || slices.Contains(e.Needs, NeedsEtcd) {
		return "", false // the explorer has gates for SQL and Redis
	}
	if dialect.WhyUnexplored(database) != "" {
		return "", false
	}
	if c == promise.Explore {
		return e.Promised(promise.TwoProcesses, database), true
	}
	if e.Promised(promise.TwoProcesses, database) != verdict.Holds {
		return "", false
	}
	if v, ok := e.ExploredAs[c]; ok {
		return v, true
	}
	switch {
	case c == promise.ExploreCrash:
		return e.Promised(promise.Crash, database), true
	case c == promise.ExploreExpire && e.Leased:
		return e.Promised(promise.Pause, database), true
	case c == promise.ExploreForget && Strikes(promise.RedisRestart, e.Needs):
		return e.Promised(promise.RedisRestart, database), true
	case c == promise.ExploreForget && Strikes(promise.NodeRestart, e.Needs):
		return e.Promised(promise.NodeRestart, database), true
	}
	return "", false
}

// WitnessSearches are the searches that docs/witnesses shows: Traits.Witnesses, or
// the one that the promise calls for. It is the first of: every order with nothing
// wrong, a crash, a lease that runs out, a Redis that forgets. Empty for a strategy
// that no exploration is promised to break.
func (e Entry) WitnessSearches() []Witness {
	if e.Witnesses != nil {
		return e.Witnesses
	}
	for _, s := range []struct {
		condition promise.Condition
		flags     string
	}{
		{promise.Explore, ""},
		{promise.ExploreCrash, "--events crash"},
		{promise.ExploreExpire, "--events expire --bound 1"},
		{promise.ExploreForget, "--events forget --bound 1"},
	} {
		if !exploredBreaks(e, s.condition, dialect.MySQL) {
			continue
		}
		if !exploredBreaks(e, s.condition, dialect.SQLite) {
			s.flags = strings.TrimSpace(s.flags + " --engine local")
		}
		return []Witness{{Flags: s.flags}}
	}
	return nil
}

// exploredBreaks reports whether the exploration must find a violation.
func exploredBreaks(e Entry, c promise.Condition, database string) bool {
	v, possible := e.Explored(c, database)
	return possible && v != "" && v != verdict.Holds
}
