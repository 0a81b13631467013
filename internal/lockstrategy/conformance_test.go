package lockstrategy_test

import (
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

// TestConformance: on the embedded engine each test has a database and a Redis of its
// own, so strategies run side by side. On real servers they run one after the other:
// MariaDB counts the waiting statements of all its databases together.
func TestConformance(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t) // servers that tests share start now and are no leak later
		alone := e.Name != engine.Embedded
		if !alone {
			lockstrategytest.NoLeaks(t)
		}
		for _, entry := range lockstrategy.All() {
			t.Run(entry.Name, func(t *testing.T) {
				if alone {
					lockstrategytest.NoLeaks(t)
				} else {
					t.Parallel()
				}
				if why := entry.Missing(onengine.Deps(e)); why != "" {
					t.Skip(why) // on real servers none is left out: TestEveryStrategyRuns
				}
				lockstrategytest.Exercise(t, entry, open)
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
