// Package lockstrategytest is the one suite for every strategy. Each of its tests
// says what a sound strategy keeps. A broken strategy passes all of them but those
// that must catch it: there it must fail, for the reason that its entry gives.
//
// It runs the shipped code on real connections. Nothing is decided by a sleep:
// buyers are put in their places by a row that the test keeps locked, by the lock
// events that the strategy itself reports, and by gates in front of a buyer's
// Redis commands. Time passes when the test says so.
package lockstrategytest

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// crowdWait is a wait bound that no crowd of this suite reaches, on the slowest
// machine: what a crowd shows must not hang on the clock.
const crowdWait = 2 * time.Minute

// stepTimeout bounds every step that must come at once.
const stepTimeout = time.Minute

// A check fails tb when the strategy is not sound.
type check struct {
	name string
	run  func(tb testing.TB, w *world)
	// lacks says what the strategy or the engine has not that the check is about;
	// "" when it applies, nil when it always does.
	lacks func(w *world) string
}

// checks in the order in which they run.
func checks() []check {
	return []check{
		{"Rush", func(tb testing.TB, w *world) { rush(tb, w, 1, 1) }, nil},
		{"TwoProcesses", func(tb testing.TB, w *world) { rush(tb, w, 2, 1) }, nil},
		{"MixedUnits", func(tb testing.TB, w *world) { rush(tb, w, 2, 2, 1, 5) }, nil},
		{"SoldOutAtZero", soldOutAtZero, nil},
		{"SeveralUnits", severalUnits, nil},
		{"BadOrderAlone", badOrderAlone, lacksOrder},
		{"RestockWithUnitsLeft", restockWithUnitsLeft, nil},
		{"RestockWhileHolding", restockWhileHolding, nil},
		{"ProductsApart", productsApart, nil},
		{"ProductsDoNotWait", productsDoNotWait, lacksVictims},
		{"ErrorInside", errorInside, nil},
		{"WaitBound", waitBound, nil},
		{"CancelWhileWaiting", cancelWhileWaiting, nil},
		{"CancelWhileHolding", cancelWhileHolding, nil},
		{"IdempotentRetry", idempotentRetry, nil},
		{"KeyOfOneOrder", keyOfOneOrder, nil},
		{"HolderCrash", holderCrash, lacksRedisLease},
		{"ExpiredLease", expiredLease, lacksLeaseAndVictims},
		{"LostLease", lostLease, lacksLease},
		{"ReleaseRace", releaseRace, lacksRedisLease},
		{"StockCrash", stockCrash, lacksStock},
		{"StockForgotten", stockForgotten, lacksStockAndVictims},
	}
}

// Exercise runs the suite on one entry. open returns servers that belong to the test. All checks
// share one engine, since each restocks its product; a check that must fail gets its own. The
// checks in entry.CaughtBy must fail as described there; all others must pass. Exercise skips a
// check that does not apply, with the reason.
//
// Exercise does not look for leaked goroutines: several entries may run at once.
// NoLeaks around them does.
func Exercise(t *testing.T, entry lockstrategy.Entry, open func(t *testing.T) *engine.Engine) {
	asked := &world{books: books{open(t)}, entry: entry} // for lacks
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
			w := &world{books: asked.books, entry: entry}
			t.Cleanup(w.close)
			if reason, broken := caughtBy(w, c.name); broken {
				w.engine = open(t) // it may leave locks and buyers behind
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

// NoLeaks fails the test when goroutines that run at its end did not run at this call.
// Parallel subtests have ended by then.
func NoLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}
