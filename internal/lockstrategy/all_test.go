package lockstrategy_test

import (
	"testing"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/promise"
)

// TestPromises: under each fault that strikes a strategy there is a promise, or
// it is said why there is none.
func TestPromises(t *testing.T) {
	for _, e := range lockstrategy.All() {
		for _, f := range promise.Played() {
			_, promised := e.Promise[f]
			if said := e.NoPromise[f] != ""; lockstrategy.Strikes(f, e.Needs) != (promised || said) || promised && said {
				t.Errorf("%s under %s: strikes %t, promised %t, said why not %t", e.Name, f, lockstrategy.Strikes(f, e.Needs), promised, said)
			}
		}
	}
}
