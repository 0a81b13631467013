// Package lockstrategytest is the test suite for all strategies. Each of its tests states one property of a
// correct strategy. The entry of a broken strategy names the tests that it must fail, with the messages. It
// must pass all others.
//
// The suite runs the shipped code on real connections. No sleep decides a result. A test brings a buyer to a
// certain point: it locks a row, waits for a lock event of the strategy, or stops the buyer before a Redis
// command. The test decides when time passes.
package lockstrategytest

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// crowdWait is a wait that no rush of this suite reaches, even on the slowest machine: results must
// not depend on the clock.
const crowdWait = 2 * time.Minute

// stepTimeout limits every step that should need almost no time.
const stepTimeout = time.Minute

// A check is one test of the suite. It fails if the strategy lacks the property that the check tests.
type check struct {
	name string
	run  func(tb testing.TB, w *world)
	// lacks says which requirement of the check the strategy or the engine does not meet. It returns "" if the
	// check applies. If lacks is nil, the check always applies.
	lacks func(w *world) string
	// tests is the condition, such as a fault, whose promise the check tests, or "". If the catalogue
	// promises that the strategy holds under this condition on the database, the check must pass there.
	tests promise.Condition
}

func checks() []check {
	return []check{
		{"Rush", func(tb testing.TB, w *world) { rush(tb, w, 1, 1) }, nil, promise.Rush},
		{"TwoProcesses", func(tb testing.TB, w *world) { rush(tb, w, 2, 1) }, nil, promise.TwoProcesses},
		{"MixedUnits", func(tb testing.TB, w *world) { rush(tb, w, 2, 2, 1, 5) }, nil, promise.TwoProcesses},
		{"SoldOutAtZero", soldOutAtZero, nil, ""},
		{"SeveralUnits", severalUnits, nil, ""},
		{"BadOrderAlone", badOrderAlone, lacksOrder, ""},
		{"BeyondLimits", beyondLimits, lacksLimit, ""},
		{"RestockWithUnitsLeft", restockWithUnitsLeft, nil, ""},
		{"RestockWhileHolding", restockWhileHolding, nil, ""},
		{"ProductsApart", productsApart, nil, ""},
		{"ProductsDoNotWait", productsDoNotWait, lacksVictims, ""},
		{"ErrorInside", errorInside, nil, ""},
		{"WaitBound", waitBound, nil, ""},
		{"CancelWhileWaiting", cancelWhileWaiting, nil, ""},
		{"CancelWhileHolding", cancelWhileHolding, nil, ""},
		{"IdempotentRetry", idempotentRetry, nil, ""},
		{"KeyOfOneOrder", keyOfOneOrder, nil, ""},
		{"HolderCrash", holderCrash, lacksRedisLease, ""},
		{"ExpiredLease", expiredLease, lacksLeaseAndVictims, ""},
		{"LostLease", lostLease, lacksLease, ""},
		{"ReleaseRace", releaseRace, lacksRedisLease, ""},
		{"StockCrash", stockCrash, lacksStock, ""},
		{"StockForgotten", stockForgotten, lacksStockAndVictims, ""},
	}
}

// Exercise runs the suite on one entry. The function `open` starts servers that belong to the test. All checks
// share one engine, since each of them restocks its product first. Only a check that must fail gets its own.
// The checks in entry.CaughtBy must fail as described there, and all others must pass. Exercise skips a check
// that does not apply, with the reason.
//
// Exercise does not look for leaked goroutines, since several entries may run at once. Its caller can do so
// with NoLeaks.
func Exercise(t *testing.T, entry lockstrategy.Entry, open func(t *testing.T) *engine.Engine) {
	asked := &world{auditor: auditor{open(t)}, entry: entry} // the argument of each check.lacks
	t.Cleanup(asked.close)
	unknown := map[string]bool{}
	for name := range entry.CaughtBy {
		unknown[name] = true
	}
	for _, c := range checks() {
		delete(unknown, c.name)
		t.Run(c.name, func(t *testing.T) {
			if c.lacks != nil {
				if why := c.lacks(asked); why != "" {
					t.Skipf("%s on %s: %s", entry.Name, asked.engine.Name, why)
				}
			}
			w := &world{auditor: asked.auditor, entry: entry}
			t.Cleanup(w.close)
			if reason, broken := caughtBy(w, c.name, c.tests); broken {
				w.engine = open(t) // the check may leave locks and buyers behind
				mustCatch(t, w, c, reason)
				return
			}
			c.run(t, w)
		})
	}
	for name := range unknown {
		t.Errorf("%s is to be caught by %s, which is no test of the suite", entry.Name, name)
	}
}

// NoLeaks fails the test if goroutines run at its end that did not run at this call. Parallel
// subtests have ended by then.
func NoLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	// After a write that took 15 ms, the PostgreSQL driver pgx reads in the background until the connection's
	// next answer. Such a goroutine may belong to an idle connection of the pool, so it is no leak.
	reads := goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead")
	t.Cleanup(func() { goleak.VerifyNone(t, before, reads) })
}

// OnEmbedded reports whether the embedded engine, SQLite and Redis, supports the strategy.
func OnEmbedded(e lockstrategy.Entry) bool {
	return !slices.ContainsFunc(e.Needs, func(n lockstrategy.Need) bool {
		return n != lockstrategy.NeedsRedis && n != lockstrategy.NeedsRedlock
	})
}
