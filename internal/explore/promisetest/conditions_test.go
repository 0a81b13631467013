package promisetest_test

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// A condition is a variation of the search. Under it, every strategy of the catalogue must keep its
// promise.
type condition struct {
	name   string
	breaks bool // a strategy that breaks in two processes also breaks under this condition
	config func(c *explore.Config)
}

const raiseInOne = "raise in one process"

func conditions() []condition {
	return []condition{
		{"mixed units", true, func(c *explore.Config) { c.Stock, c.Units, c.Bound = 4, explore.Units{3, 2}, 1 }},
		{"three mixed orders", false, func(c *explore.Config) { c.Buyers, c.Stock, c.Units, c.Bound = 3, 4, explore.Units{1, 2, 3}, 0 }},
		{"disconnect", true, func(c *explore.Config) { c.Events, c.Bound = []explore.Event{explore.Disconnect}, 1 }},
		{"disconnect in one process", false, func(c *explore.Config) { c.Events, c.Shared, c.Bound = []explore.Event{explore.Disconnect}, true, 0 }},
		{"raise", true, func(c *explore.Config) { c.Events, c.Bound = []explore.Event{explore.Raise}, 1 }},
		{raiseInOne, false, func(c *explore.Config) { c.Events, c.Shared, c.Bound = []explore.Event{explore.Raise}, true, 0 }},
		{"one key", false, func(c *explore.Config) { c.Stock, c.Units, c.OneKey, c.Bound = 4, explore.Units{1, 2}, true, 1 }},
		{"one key in one process", false, func(c *explore.Config) {
			c.Stock, c.Units, c.OneKey, c.Shared, c.Bound = 4, explore.Units{1, 2}, true, true, 0
		}},
	}
}

// TestEveryStrategy explores every gated strategy under each condition. A strategy that holds in two
// processes must hold under every condition.
func TestEveryStrategy(t *testing.T) {
	tier.Test(t, "a search of each strategy under each event")
	eachDatabase(t, func(t *testing.T, database string, open func(*testing.T, lockstrategy.Entry) *engine.Engine) {
		if database != dialect.SQLite {
			tier.Soak(t, "make test runs the searches only on SQLite")
		}
		for _, entry := range lockstrategy.All() {
			if explore.Ungated(entry) != "" {
				continue
			}
			t.Run(entry.Name, func(t *testing.T) {
				e := open(t, entry)
				if why := entry.Missing(onengine.Deps(e)); why != "" {
					t.Skip(why)
				}
				if entry.Promised(promise.TwoProcesses, e.Database) == "" {
					t.Skip("the catalogue promises nothing for two processes")
				}
				for _, c := range conditions() {
					t.Run(c.name, func(t *testing.T) { keepsPromise(t, e, entry, c) })
				}
			})
		}
	})
}

// TestSameAgain: the schedule determines everything that a strategy can observe. So each search with
// the same limit runs the same schedules in the same order, on an idle and on a busy machine.
func TestSameAgain(t *testing.T) {
	tier.Soak(t, "three searches of each strategy")
	e, digests := enginetest.Embedded(t), map[string]string{}
	for _, how := range []string{"first", "again", "busy"} {
		for range 6 {
			if how != "busy" {
				break
			}
			loop := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
			if err := loop.Start(); err != nil {
				t.Skip("no shell for a busy loop: ", err)
			}
			t.Cleanup(func() { _ = loop.Wait() }) // the cleanup runs after the end of the loop's context
		}
		for _, entry := range lockstrategy.All() {
			if entry.Missing(onengine.Deps(e)) != "" || explore.Ungated(entry) != "" {
				continue
			}
			t.Run(how+"/"+entry.Name, func(t *testing.T) {
				c := exploretest.Config(e, entry)
				c.Events, c.Schedules = explore.Events(false), 60
				result := exploretest.Search(t, c)
				if known := digests[entry.Name]; known != "" && known != result.Digest {
					t.Errorf("%d schedules with the digest %s, and before it was %s", result.Runs, result.Digest, known)
				}
				digests[entry.Name] = result.Digest
			})
		}
	}
	if len(digests) < 20 {
		t.Errorf("only %d strategies", len(digests))
	}
}

// explored reports whether make test explores the strategy on this database, with the event and at least
// one preemption, for some row of the function promises.
func explored(entry lockstrategy.Entry, event explore.Event, database string) bool {
	return slices.ContainsFunc(promises(), func(x exploretest.Expectation) bool {
		c := explore.Config{Bound: -1}
		if x.Config != nil {
			x.Config(&c)
		}
		return x.Strategy == entry.Name && x.Soak == "" && runsOn(x, database) && slices.Contains(x.Events, event) &&
			c.Bound != 0 && c.Parts == 0 && !c.Shared
	})
}

// manyCommands reports whether a purchase with the strategy takes too many commands for make test to
// combine a preemption with an event. make soak runs these schedules.
func manyCommands(entry lockstrategy.Entry) bool {
	return slices.Contains([]string{"redlock", "multilock", "redis-lua", "fenced"}, entry.Name)
}

func keepsPromise(t *testing.T, e *engine.Engine, entry lockstrategy.Entry, c condition) {
	t.Helper()
	config := exploretest.Config(e, entry)
	config.First = true
	c.config(&config)
	elsewhere := slices.Contains(entry.Needs, lockstrategy.NeedsRedis) || slices.Contains(entry.Needs, lockstrategy.NeedsRedlock)
	if elsewhere && e.DB.Name() != dialect.SQLite {
		tier.Soak(t, "the lock is in Redis, so the search on SQLite is enough")
	}
	if len(config.Events) == 1 && !config.Shared && explored(entry, config.Events[0], e.DB.Name()) {
		tier.Soak(t, "TestStrategies searches the strategy with the same event and bound")
	}
	if c.name == raiseInOne && len(entry.Needs) > 0 {
		tier.Soak(t, "the lock is on a server, so the search with two processes is enough")
	}
	if config.Shared && entry.WritesLater {
		t.Skip("one worker writes the orders of all buyers of a process, so its commands belong to no buyer")
	}
	sound := entry.Promised(promise.TwoProcesses, e.Database) == verdict.Holds
	switch {
	case tier.Soaking() && (sound || c.breaks): // with one more preemption, other strategies oversell even without the condition
		config.Bound++
	case len(config.Events) > 0 && manyCommands(entry):
		config.Bound = 0
	}
	x := exploretest.Open(t, config)
	result, err := x.Search(t.Context())
	require.NoError(t, err)
	t.Logf("%d schedules in %.1f s: %v", result.Explored, result.Seconds, result.Verdicts)
	switch holds := !c.breaks || sound; {
	case holds && result.Violations > 0:
		t.Errorf("%s: %s: %s", result.Witness.Verdict, result.Witness.Why, result.Witness.Schedule)
	case holds && (!result.Complete || result.Explored < 2):
		t.Errorf("explored %d, complete %v: proves nothing", result.Explored, result.Complete)
	case holds && result.Early > 0 && !entry.AdmitsFirst:
		t.Errorf("in %d schedules a buyer was told sold out while enough units were left", result.Early)
	case !holds && result.Violations == 0:
		t.Errorf("explored %d schedules, and none breaks", result.Explored)
	}
}
