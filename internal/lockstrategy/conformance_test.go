package lockstrategy_test

import (
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
)

func TestConformance(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		for _, entry := range lockstrategy.All() {
			t.Run(entry.Name, func(t *testing.T) { lockstrategytest.Exercise(t, entry, open) })
		}
	})
}
