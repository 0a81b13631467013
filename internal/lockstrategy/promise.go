package lockstrategy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// Affects reports whether a condition, such as a fault in a server, affects a strategy with these needs.
func Affects(c promise.Condition, needs []Need) bool {
	servers := promise.Struck(c)
	return servers == nil || slices.ContainsFunc(needs, func(n Need) bool { return slices.Contains(servers, string(n)) })
}

// holds returns the entry with the promise that the strategy holds (keeps the stock right) under each
// condition that affects it.
func (e Entry) holds() Entry { return e.holdsExcept(nil) }

// holdsExcept promises the verdicts in the parameter `breaks`, and "holds" under every other condition that
// affects the entry. The verdict "" means no promise. Every promise was measured with `shop verify --engine
// local`.
func (e Entry) holdsExcept(breaks promise.Promise) Entry {
	if e.Needs == nil {
		e.Needs = []Need{}
	}
	e.Promise = promise.Promise{}
	for _, c := range promise.Played() {
		if !Affects(c, e.Needs) {
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

// atBest returns v. Under a condition that breaks every strategy, it returns Lost instead, unless v is "".
func atBest(c promise.Condition, v verdict.Verdict) verdict.Verdict {
	if promise.BreaksAll(c) && v != "" {
		return verdict.Lost
	}
	return v
}

// withPromiseOn promises the verdict v on a database under those of the conditions that affect the entry;
// "" means no promise.
func (e Entry) withPromiseOn(database string, conditions []promise.Condition, v verdict.Verdict) Entry {
	differs := promise.Promise{}
	maps.Copy(differs, e.PromiseOn[database])
	for _, c := range conditions {
		if Affects(c, e.Needs) {
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

// withPromiseAboveReadCommitted promises the verdict v for PostgreSQL at REPEATABLE READ and SERIALIZABLE,
// which refuses a stale write with error 40001.
func (e Entry) withPromiseAboveReadCommitted(conditions []promise.Condition, v verdict.Verdict) Entry {
	return e.withPromiseOn(dialect.PostgresRepeatableRead, conditions, v).withPromiseOn(dialect.PostgresSerializable, conditions, v)
}

// leaseBreaks returns the verdicts promised for a lease that is not renewed. The strategy breaks if the lease
// expires before its holder notices, or if Redis loses the lease.
func leaseBreaks() promise.Promise {
	p := renewedLeaseBreaks()
	p[promise.SlowSection], p[promise.ShortLease], p[promise.Partition] = verdict.Oversold, verdict.Oversold, verdict.Oversold
	return p
}

// renewedLeaseBreaks returns the verdicts promised for a lease that its process renews. If a renewal fails, the
// process gives the lease up before the lease expires.
func renewedLeaseBreaks() promise.Promise {
	return promise.Promise{
		promise.Pause: verdict.Oversold, promise.RedisRestart: verdict.Oversold,
		promise.RedisFailover: verdict.Oversold, promise.PrimaryPartition: verdict.Oversold, promise.ClockJump: verdict.Oversold,
	}
}

// OnRedis returns the entry with its promises for a topology of Redis, such as a cluster. Package topology
// has the names.
func (e Entry) OnRedis(kind string) Entry {
	e.redis = kind
	return e
}

// Confirmed returns the entry with its promises for a lock that counts only after replicas have stored it.
// A replica that is elected after a failover then has the lock too.
func (e Entry) Confirmed() Entry {
	if e.Confirms {
		e.Promise = maps.Clone(e.Promise)
		e.Promise[promise.RedisFailover] = verdict.Holds
		e.Lock.SharedUnder = slices.DeleteFunc(slices.Clone(e.Lock.SharedUnder), func(c promise.Condition) bool { return c == promise.RedisFailover })
	}
	return e
}

// Promised returns the verdict that is promised under a condition on a database (a name as in
// engine.Engine.Database); "" means no promise. A new entry without any promise is expected to hold.
func (e Entry) Promised(c promise.Condition, database string) verdict.Verdict {
	if e.Promise == nil {
		return verdict.Holds
	}
	if on := promise.On(c); on != "" && dialect.Kind(database) != on {
		return "" // the condition does not exist on this database
	}
	if e.LackedOn(database) != "" {
		return ""
	}
	if on := promise.OnRedis(c); on != "" && cmp.Or(e.redis, topology.Single) != on {
		return ""
	}
	if v, ok := e.PromiseOn[database][c]; ok {
		return v
	}
	if dialect.LevelNamed(database).RefusesStale && !slices.Contains(promise.Crowds(), c) {
		return "" // no run has injected faults at this isolation level
	}
	return e.Promise[c]
}

// RestocksAnytime reports whether any process may restock while buyers of other processes are in the
// critical section. That is safe if the database alone decides each sale.
func (e Entry) RestocksAnytime(database string) bool {
	isServer := func(n Need) bool { return n != NeedsSkipLocked }
	return !slices.ContainsFunc(e.Needs, isServer) && e.Promised(promise.TwoProcesses, database) == verdict.Holds
}

// LackedOn says why the database does not meet one of the strategy's needs. It goes by the database's name
// alone. It returns "" if the database meets all needs.
func (e Entry) LackedOn(database string) string {
	lacks := dialect.Lacks(database)
	for _, need := range e.Needs {
		if why := lacks[string(need)]; why != "" {
			return why
		}
	}
	return ""
}

// WhyNoPromise says why Promised returns "" under a condition. It returns "" if there is a promise.
func (e Entry) WhyNoPromise(c promise.Condition, database string) string {
	switch {
	case e.Promised(c, database) != "":
		return ""
	case dialect.Kind(database) == dialect.Galera && e.NoPromise[c] == "":
		return whyNotOnGalera(e, c, database)
	case e.NoPromise[c] != "" || !dialect.LevelNamed(database).RefusesStale:
		return e.NoPromise[c]
	case slices.Contains(promise.Crowds(), c):
		return "the database refuses stale writes at this isolation level and the strategy does not start again; how many buyers are affected is chance"
	}
	return "no run at this isolation level exists"
}

// Explored returns the verdict that an exploration must reach on a database, and whether that exploration
// is possible. An exploration searches the interleavings of two buyers and one unit. "" means that the
// catalogue promises nothing. A strategy that breaks without any event is not explored with events.
//
// The verdict follows from the promise under an equivalent condition. The conditions are two processes, a pause
// longer than the lease, a crash of the holder, and a Redis that restarts empty. A fault hits a holder inside
// its critical section, but an explorer's event may come at any step. If that makes a difference,
// Traits.ExploredAs has the verdict.
func (e Entry) Explored(c promise.Condition, database string) (expected verdict.Verdict, possible bool) {
	if slices.Contains(e.Needs, NeedsZookeeper) || slices.Contains(e.Needs, NeedsEtcd) {
		return "", false // the explorer controls only SQL and Redis commands
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
	case c == promise.ExploreForget && Affects(promise.RedisRestart, e.Needs):
		return e.Promised(promise.RedisRestart, database), true
	case c == promise.ExploreForget && Affects(promise.NodeRestart, e.Needs):
		return e.Promised(promise.NodeRestart, database), true
	}
	return "", false
}

// WitnessSearches returns the searches whose witnesses (violations) the documentation shows. These are
// Traits.Witnesses or, if that is nil, the first search that is promised to find a violation. It tries in this
// order: no event, a crash, an expired lease, a Redis that loses its keys. The result is empty if no
// exploration is promised to break the strategy.
func (e Entry) WitnessSearches() []WitnessSearch {
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
		return []WitnessSearch{{Flags: s.flags}}
	}
	return nil
}

// exploredBreaks reports whether the catalogue promises that the exploration finds a violation.
func exploredBreaks(e Entry, c promise.Condition, database string) bool {
	v, possible := e.Explored(c, database)
	return possible && v != "" && v != verdict.Holds
}
