package lockstrategy_test

import (
	"testing"

	"github.com/oversell/oversell/internal/lockstrategy"
)

// TestPromises: under each fault that strikes a strategy there is a promise, or
// it is said why there is none.
func TestPromises(t *testing.T) {
	for _, e := range lockstrategy.All() {
		for _, f := range lockstrategy.Faults() {
			_, promised := e.Promise[f]
			if said := e.NoPromise[f] != ""; f.Strikes(e.Needs) != (promised || said) || promised && said {
				t.Errorf("%s under %s: strikes %t, promised %t, said why not %t", e.Name, f, f.Strikes(e.Needs), promised, said)
			}
		}
	}
}
