package promisetest_test

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/dialect"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/localserver/localservertest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/verdict"
)

// TestAboveReadCommitted: every order of two buyers of what only the database decides, on
// PostgreSQL at its two other levels. Where the catalogue makes no promise, since how many
// buyers are turned away is chance, no order sells too much all the same.
func TestAboveReadCommitted(t *testing.T) {
	localservertest.SkipShort(t)
	for _, on := range openLevels(t) {
		if !dialect.RefusesStale(on.level.Name) {
			continue
		}
		t.Run(on.level.Name, func(t *testing.T) {
			for _, entry := range lockstrategy.All() {
				want, explored := entry.Explored(promise.Explore, on.level.Name)
				if !explored || slices.ContainsFunc(entry.Needs, func(n lockstrategy.Need) bool { return n != lockstrategy.NeedsNamedLocks }) {
					continue
				}
				if want == "" {
					want = verdict.Holds
				}
				t.Run(entry.Name, func(t *testing.T) {
					exploretest.Check(t, on.engine, entry, exploretest.Expectation{Strategy: entry.Name, Want: want})
				})
			}
		})
	}
}
