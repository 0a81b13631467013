package promisetest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/tier"
)

// TestAboveReadCommitted explores strategies without lock servers at PostgreSQL's two levels above READ
// COMMITTED. make test runs schedules with at most one preemption, make soak every schedule. If the
// number of refusals depends on chance, the catalogue promises nothing, but no schedule may oversell.
// If an event breaks a strategy at READ COMMITTED, the event breaks it at these levels, too
// (lockstrategy.BrokenBy).
func TestAboveReadCommitted(t *testing.T) {
	tier.Test(t, "needs servers")
	for _, on := range openLevels(t) {
		if !on.level.RefusesStale {
			continue
		}
		t.Run(on.level.Name, func(t *testing.T) {
			for _, entry := range lockstrategy.All() {
				if want, explored := entry.Explored(promise.Explore, on.level.Name); explored && onDatabaseOnly(entry) {
					if want == "" {
						want = verdict.Holds
					}
					t.Run(entry.Name, func(t *testing.T) {
						config := bound(1)
						if tier.Soaking() {
							config = nil
						}
						exploretest.Check(t, on.engine, entry, exploretest.Expectation{Strategy: entry.Name, Want: want, Config: config})
					})
				}
				if c, want := lockstrategy.BrokenBy(entry, on.level.Name); c != "" {
					event := explore.Event(strings.TrimPrefix(string(c), "explore-"))
					t.Run(entry.Name+"+"+string(event), func(t *testing.T) {
						tier.Soak(t, "make test searches the strategies with an event on MariaDB and at READ COMMITTED")
						exploretest.Check(t, on.engine, entry, exploretest.Expectation{
							Strategy: entry.Name, Events: []explore.Event{event}, Want: want, Config: bound(1),
						})
					})
				}
			}
		})
	}
}

// onDatabaseOnly reports whether a strategy needs no server except the database.
func onDatabaseOnly(e lockstrategy.Entry) bool {
	return !slices.ContainsFunc(e.Needs, func(n lockstrategy.Need) bool { return n != lockstrategy.NeedsNamedLocks })
}
