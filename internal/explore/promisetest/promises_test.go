package promisetest_test

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/tier"
)

func bound(n int) func(c *explore.Config) {
	return func(c *explore.Config) { c.Bound = n }
}

// whole makes the search continue after the first violation.
func whole(n int) func(c *explore.Config) {
	return func(c *explore.Config) { c.Bound, c.First = n, false }
}

func shared(c *explore.Config) { c.Shared = true }

// symmetric makes the search start only with buyer 1, which halves the number of schedules.
func symmetric(n int) func(c *explore.Config) {
	return func(c *explore.Config) { c.Bound, c.Symmetry = n, true }
}

// withoutRestock returns all events except restock, which breaks a lock that is not a row lock.
func withoutRestock() []explore.Event {
	return slices.DeleteFunc(explore.Events(false), func(e explore.Event) bool { return e == explore.Restock })
}

// crowd configures a number of buyers, with symmetry reduction, and a bound of preemptions.
func crowd(buyers, preemptions int) func(c *explore.Config) {
	return func(c *explore.Config) { c.Buyers, c.Symmetry, c.Bound = buyers, true, preemptions }
}

// few sets the maximum number of events and preemptions in a schedule.
func few(events, preemptions int) func(c *explore.Config) {
	return func(c *explore.Config) { c.MaxEvents, c.Bound = events, preemptions }
}

// parts divides the stock into n rows at the start of each schedule, and allows at most one event and
// one preemption.
func parts(n int64) func(c *explore.Config) {
	return func(c *explore.Config) { c.Parts, c.MaxEvents, c.Bound = n, 1, 1 }
}

// row returns an Expectation. The parameter `on` limits it to "mysql", "sqlite" or "server" (any database
// server).
func row(strategy string, events []explore.Event, want verdict.Verdict, config func(c *explore.Config), on string) exploretest.Expectation {
	return exploretest.Expectation{Strategy: strategy, Events: events, Want: want, Config: config, On: on}
}

func runsOn(x exploretest.Expectation, database string) bool {
	return x.On == "" || x.On == database || x.On == "server" && database != dialect.SQLite
}

// long marks a row that only make soak runs. why says which other test covers the promise.
func long(why string, x exploretest.Expectation) exploretest.Expectation {
	x.Soak = why
	return x
}

// promises returns the catalogue's promises, with the search that each of them needs.
func promises() []exploretest.Expectation {
	return []exploretest.Expectation{
		row("none", nil, verdict.Oversold, nil, ""),
		row("transaction", nil, verdict.Oversold, nil, "server"),
		row("transaction", nil, verdict.Holds, bound(2), "sqlite"),
		long("902 schedules; make test runs those with at most two preemptions", row("transaction", nil, verdict.Holds, nil, "sqlite")), // the database rejects a stale snapshot
		row("early-unlock", nil, verdict.Oversold, nil, ""),
		row("early-unlock", nil, verdict.Oversold, shared, ""),
		row("mutex", nil, verdict.Oversold, nil, ""), // the buyers run in two processes
		row("mutex", nil, verdict.Holds, shared, ""),
		row("queue", nil, verdict.Holds, nil, ""),
		row("queue", nil, verdict.Holds, shared, ""),
		row("queue", explore.Events(false), verdict.Holds, few(1, 1), ""),
		long("several events in one schedule; make test runs schedules with one of them", row("queue", explore.Events(false), verdict.Holds, bound(2), "")),
		row("for-update", nil, verdict.Holds, nil, ""),
		row("for-update", explore.Events(false), verdict.Holds, few(1, 1), ""),
		row("for-update", []explore.Event{explore.Raise}, verdict.Holds, bound(1), "server"),
		long("several events in one schedule; make test runs schedules with one of them", row("for-update", explore.Events(false), verdict.Holds, nil, "")),
		row("optimistic", nil, verdict.Holds, nil, ""),
		row("optimistic", explore.Events(false), verdict.Holds, few(1, 1), ""),
		long("several events in one schedule; make test runs schedules with one of them", row("optimistic", explore.Events(false), verdict.Holds, bound(2), "")),
		row("conditional", nil, verdict.Holds, nil, ""),
		row("conditional", explore.Events(false), verdict.Holds, few(1, 1), ""),
		long("several events in one schedule; make test runs schedules with one of them", row("conditional", explore.Events(false), verdict.Holds, bound(2), "")),
		row("check-after", nil, verdict.Holds, nil, ""),
		row("check-after", explore.Events(false), verdict.Holds, few(1, 1), ""),
		long("several events in one schedule; make test runs schedules with one of them", row("check-after", explore.Events(false), verdict.Holds, bound(2), "")),
		row("serializable", nil, verdict.Holds, bound(2), ""),
		long("902 schedules; make test runs those with at most two preemptions", row("serializable", nil, verdict.Holds, nil, "")),
		row("serializable", explore.Events(false), verdict.Holds, few(1, 1), ""),
		long("several events in one schedule; make test runs schedules with one of them", row("serializable", explore.Events(false), verdict.Holds, bound(2), "")),
		row("named-lock", nil, verdict.Holds, nil, "server"),
		row("named-lock", []explore.Event{explore.Raise}, verdict.Holds, bound(1), "server"),
		long("7 s; make test searches the strategy without events", row("named-lock", withoutRestock(), verdict.Holds, few(1, 1), "server")),
		row("named-lock", []explore.Event{explore.Restock}, verdict.Leaked, bound(1), "mysql"), // PostgreSQL ends its lock with the transaction
		long("several events in one schedule; make test runs schedules with one of them", row("named-lock", withoutRestock(), verdict.Holds, nil, "server")),
		row("coalesced", nil, verdict.Holds, nil, ""),
		row("coalesced", nil, verdict.Holds, shared, ""),
		row("coalesced", []explore.Event{explore.Timeout}, verdict.Holds, shared, "server"),
		row("coalesced", explore.Events(false), verdict.Holds, few(1, 1), ""),
		long("several events in one schedule; make test runs schedules with one of them", row("coalesced", explore.Events(false), verdict.Holds, nil, "")),
		row("bucketed", nil, verdict.Holds, bound(2), ""),
		row("bucketed", nil, verdict.Holds, func(c *explore.Config) { c.Buyers, c.Stock, c.Bound = 3, 3, 1 }, "sqlite"), // the first buyer divides the stock, and two buyers use the same row
		long("21,330 schedules on MariaDB; make test runs those with few preemptions", row("bucketed", nil, verdict.Holds, nil, "")),
		long("a minute; make test searches divided stock under a crash and a timeout", row("bucketed", explore.Events(false), verdict.Holds, few(1, 1), "server")),
		row("bucketed", nil, verdict.Holds, func(c *explore.Config) { c.Parts, c.Buyers, c.Stock, c.Bound = 2, 3, 2, 1 }, ""), // two buyers use the same row
		row("bucketed", []explore.Event{explore.Crash, explore.Timeout}, verdict.Holds, parts(2), ""),
		row("bucketed", nil, verdict.Holds, func(c *explore.Config) { c.Shared, c.Bound = true, 1 }, ""), // one buyer collects the units of all rows, and the other waits for it
		long("several events in one schedule; make test runs schedules with one of them", row("bucketed", explore.Events(false), verdict.Holds, nil, "")),
		row("unit-rows", nil, verdict.Holds, bound(2), "server"),
		long("half a minute; make test searches under a crash and a timeout", row("unit-rows", explore.Events(false), verdict.Holds, few(1, 1), "server")),
		row("unit-rows", []explore.Event{explore.Crash, explore.Timeout}, verdict.Holds, parts(1), "server"), // two buyers want the only unit
		long("all schedules; make test runs those with few preemptions", row("unit-rows", nil, verdict.Holds, nil, "server")),
		row("setnx", nil, verdict.Holds, nil, ""),
		row("setnx", []explore.Event{explore.Crash}, verdict.Stalled, nil, ""),
		row("setnx-expire", nil, verdict.Holds, nil, ""),
		row("setnx-expire", []explore.Event{explore.Crash}, verdict.Stalled, nil, ""),
		row("setnx-ttl", nil, verdict.Holds, nil, ""),
		row("setnx-ttl", []explore.Event{explore.Crash}, verdict.Holds, nil, ""),
		row("setnx-ttl", []explore.Event{explore.Expire}, verdict.Oversold, nil, ""),
		row("getset", nil, verdict.Holds, nil, ""),
		row("getset", []explore.Event{explore.Expire}, verdict.Oversold, nil, ""),
		row("token-get-del", nil, verdict.Holds, nil, ""),
		row("token-get-del", []explore.Event{explore.Expire}, verdict.Oversold, nil, ""),
		row("redis", nil, verdict.Holds, nil, ""),
		row("redis", []explore.Event{explore.Expire}, verdict.Oversold, nil, ""),
		row("redis", []explore.Event{explore.Forget}, verdict.Oversold, nil, ""),
		row("watchdog", nil, verdict.Holds, nil, ""),
		row("watchdog", []explore.Event{explore.Expire}, verdict.Oversold, nil, ""),
		row("watchdog", []explore.Event{explore.Renew}, verdict.Holds, bound(1), "sqlite"),
		row("watchdog", []explore.Event{explore.NoUnlock}, verdict.Stalled, bound(1), "sqlite"),
		row("setnx-ttl", []explore.Event{explore.NoUnlock}, verdict.Holds, bound(1), "sqlite"),
		long("the lock is in Redis; make test runs the same search on SQLite", row("watchdog", []explore.Event{explore.Renew}, verdict.Holds, bound(1), "mysql")),
		row("watchdog", []explore.Event{explore.Expire, explore.Renew}, verdict.Oversold, nil, "sqlite"),
		long("the lock is in Redis; make test runs the same search on SQLite", row("watchdog", []explore.Event{explore.Expire, explore.Renew}, verdict.Oversold, nil, "mysql")),
		row("redisson", nil, verdict.Holds, nil, ""),
		row("redisson", []explore.Event{explore.Expire}, verdict.Oversold, nil, ""),
		row("redisson", []explore.Event{explore.Renew}, verdict.Holds, bound(1), "sqlite"),
		long("the lock is in Redis; make test runs the same search on SQLite", row("redisson", []explore.Event{explore.Renew}, verdict.Holds, bound(1), "mysql")),
		row("redisson", []explore.Event{explore.Renew}, verdict.Holds, func(c *explore.Config) { c.Shared, c.Bound = true, 0 }, ""),
		row("fenced", nil, verdict.Holds, nil, ""),
		row("fenced", []explore.Event{explore.Expire}, verdict.Holds, bound(1), ""), // a late holder needs one preemption
		row("fenced", explore.Events(false), verdict.Holds, few(1, 0), ""),
		long("836 schedules; make test runs expired leases with a preemption, other events without", row("fenced", explore.Events(false), verdict.Holds, few(1, 1), "mysql")),
		// Redis grants one token twice, and another holder comes between the two.
		row("fenced", []explore.Event{explore.Expire, explore.Forget}, verdict.Holds, crowd(3, 0), "sqlite"),
		long("8,389 schedules; make test runs those without preemption", row("fenced", []explore.Event{explore.Expire, explore.Forget}, verdict.Holds, crowd(3, 1), "sqlite")),
		long("8,389 schedules; make test searches under one event on MariaDB", row("fenced", []explore.Event{explore.Expire, explore.Forget}, verdict.Holds, crowd(3, 1), "mysql")),
		row("redis-watch", []explore.Event{explore.Crash}, verdict.Leaked, nil, ""),
		row("redis-watch", []explore.Event{explore.Forget}, verdict.Oversold, whole(1), ""),
		row("redis-watch", nil, verdict.Holds, bound(3), "sqlite"),
		row("redis-decr", []explore.Event{explore.Crash}, verdict.Leaked, nil, ""),
		row("redis-decr", []explore.Event{explore.Forget}, verdict.Oversold, whole(1), ""), // the first violation is a leak
		row("redis-decr", nil, verdict.Holds, bound(3), "sqlite"),
		row("redis-lua", nil, verdict.Holds, bound(1), ""),
		row("redis-lua", explore.Events(false), verdict.Holds, few(1, 0), ""),
		row("redlock", nil, verdict.Holds, bound(0), ""),
		// A violation takes two preemptions.
		row("redlock", []explore.Event{explore.Forget}, verdict.Holds, symmetric(0), "sqlite"),
		long("1,000 schedules without a violation; make test runs those without preemption",
			row("redlock", []explore.Event{explore.Forget}, verdict.Holds, symmetric(1), "sqlite")),
		long("2,800 schedules until the first violation; TestWitnesses replays its witness",
			row("redlock", []explore.Event{explore.Forget}, verdict.Oversold, symmetric(2), "")),
		row("multilock", nil, verdict.Holds, bound(0), ""),
		row("multilock", []explore.Event{explore.Renew}, verdict.Holds, bound(0), ""),
	}
}

// eachDatabase runs test on the embedded engine, which has only the lock servers of one strategy, and on
// real servers.
func eachDatabase(t *testing.T, test func(t *testing.T, database string, open func(*testing.T, lockstrategy.Entry) *engine.Engine)) {
	t.Run(engine.Embedded, func(t *testing.T) {
		test(t, dialect.SQLite, func(t *testing.T, entry lockstrategy.Entry) *engine.Engine {
			return enginetest.EmbeddedWith(t, lockstrategy.LockServers(entry.Name))
		})
	})
	t.Run(engine.Local, func(t *testing.T) {
		test(t, dialect.MySQL, func(t *testing.T, _ lockstrategy.Entry) *engine.Engine { return enginetest.Local(t) })
	})
	t.Run(dialect.Postgres, func(t *testing.T) {
		test(t, dialect.Postgres, func(t *testing.T, _ lockstrategy.Entry) *engine.Engine { return enginetest.Postgres(t) })
	})
}

// TestStrategies explores the catalogue's promises, completely or within the bound of the row. SQLite
// runs all rows except the simple ones, which TestVerifyQuick covers. MariaDB and PostgreSQL run the
// rows without events for strategies that need only the database. MariaDB also runs the rows that
// SQLite cannot run. make soak runs every row on each database.
func TestStrategies(t *testing.T) {
	tier.Test(t, "a search of each strategy")
	eachDatabase(t, func(t *testing.T, database string, open func(*testing.T, lockstrategy.Entry) *engine.Engine) {
		named := map[string]bool{}
		for _, want := range promises() {
			if named[want.Name()] {
				t.Errorf("two rows are %s", want.Name())
			}
			named[want.Name()] = true
			t.Run(want.Name(), func(t *testing.T) {
				if !runsOn(want, database) {
					t.Skipf("the row is for %s, and this is %s", want.On, database)
				}
				tier.Soak(t, want.Soak)
				if database == dialect.SQLite && len(want.Events) == 0 && want.Config == nil && !tier.Quick() {
					tier.Soak(t, "TestVerifyQuick explores the strategy on SQLite")
				}
				if database != dialect.SQLite && want.On == "" && (len(want.Events) > 0 || len(exploretest.Entry(t, want.Strategy).Needs) > 0) {
					tier.Soak(t, "SQLite runs this row, and the rows without events cover the differences of the databases")
				}
				if database == dialect.Postgres && len(want.Events) > 0 {
					tier.Soak(t, "MariaDB runs this row, and the rows without events cover the differences of PostgreSQL")
				}
				if len(want.Events) > 1 || slices.Contains(want.Events, explore.Renew) {
					tier.Test(t, "several events, or renewals: a longer search")
				}
				entry := exploretest.Entry(t, want.Strategy)
				exploretest.Check(t, open(t, entry), entry, want)
			})
		}
	})
}
