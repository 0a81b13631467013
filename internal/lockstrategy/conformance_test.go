package lockstrategy_test

import (
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

func TestConformance(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		for _, entry := range lockstrategy.All() {
			if entry.Missing(onengine.Deps(e)) != "" {
				continue // a server that this engine does not bring; the other one does, as TestEveryStrategyRuns shows
			}
			t.Run(entry.Name, func(t *testing.T) {
				lockstrategytest.Exercise(t, entry, open, lockstrategytest.Expected(entry))
			})
		}
	})
}

// TestEveryStrategyRuns: on real servers no strategy of the catalogue is left out.
func TestEveryStrategyRuns(t *testing.T) {
	e := enginetest.Local(t)
	for name, why := range lockstrategy.AllMissing(onengine.Deps(e)) {
		t.Errorf("%s: %s", name, why)
	}
}
