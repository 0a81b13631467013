// Package exploretest contains the common parts of the explorer's tests: a configuration, an open explorer, and the
// expected result of a search.
//
// The explorer inspects every goroutine of its process, so one process can run only one of its tests at a time. The
// tests are spread over several packages, each with its own test binary.
package exploretest

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// Config returns a configuration with two buyers and one unit in stock. Config.Bound is unlimited.
func Config(e *engine.Engine, entry lockstrategy.Entry) explore.Config {
	return explore.Config{
		OfStrategy: explore.OfStrategy{Engine: e, Strategy: entry, Stock: 1, Product: "explored"},
		Buyers:     2, Bound: -1, Budget: 5 * time.Minute,
	}
}

// Entry returns a strategy of the catalogue.
func Entry(t testing.TB, name string) lockstrategy.Entry {
	t.Helper()
	entry, ok := lockstrategy.ByName(name)
	if !ok {
		t.Fatalf("no strategy %s", name)
	}
	return entry
}

// Open opens an explorer, and closes it at the end of the test.
func Open(t testing.TB, c explore.Config) *explore.Explorer {
	t.Helper()
	x, err := explore.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// Search returns the result of a search.
func Search(t testing.TB, c explore.Config) explore.Result {
	t.Helper()
	result, err := Open(t, c).Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// An Expectation is the expected result of a search.
type Expectation struct {
	Strategy string
	Events   []explore.Event
	Want     verdict.Verdict
	Config   func(c *explore.Config) // may be nil
	On       string                  // "mysql" or "sqlite": run only on this database; "server": on any database except SQLite
	Soak     string                  // why only `make soak` runs this search; "": `make test` runs it, too
}

// Name returns a name for the expectation's test: the strategy, the events, and the limits of the search.
func (x Expectation) Name() string {
	parts := []string{x.Strategy}
	for _, e := range x.Events {
		parts = append(parts, string(e))
	}
	name := strings.Join(parts, "+")
	c := explore.Config{Bound: -1, First: true}
	if x.Config != nil {
		x.Config(&c)
	}
	for _, part := range []struct {
		is   bool
		text string
	}{
		{c.Bound >= 0, fmt.Sprintf("bound=%d", c.Bound)},
		{c.MaxEvents > 0, fmt.Sprintf("events=%d", c.MaxEvents)},
		{c.Shared, "shared"},
		{c.Parts > 0, fmt.Sprintf("parts=%d", c.Parts)},
		{c.Symmetry, "symmetry"},
		{!c.First, "whole"},
		{x.On != "", "on=" + x.On},
	} {
		if part.is {
			name += "," + part.text
		}
	}
	return name
}

// Check compares a search with its expectation. If a violation is expected, Check stops at the first. If none is
// expected, it searches all schedules.
func Check(t *testing.T, e *engine.Engine, entry lockstrategy.Entry, want Expectation) {
	t.Helper()
	c := Config(e, entry)
	c.Events, c.First = want.Events, true
	if want.Config != nil {
		want.Config(&c)
	}
	x := Open(t, c)
	result, err := x.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d schedules in %.1f s", result.Explored, result.Seconds)
	if want.Want != verdict.Holds {
		if result.Witness == nil || result.Verdicts[want.Want] == 0 {
			t.Fatalf("explored %d, %v, witness %+v, want %s", result.Explored, result.Verdicts, result.Witness, want.Want)
		}
		Replays(t, x, result.Witness)
		return
	}
	if result.Violations > 0 {
		t.Fatalf("%s: %s", result.Witness.Verdict, result.Witness.Schedule)
	}
	if result.Early > 0 {
		t.Errorf("in %d schedules a buyer was told sold out while there was enough", result.Early)
	}
	if !result.Complete || result.Explored < 2 {
		t.Fatalf("explored %d, complete %v: proves nothing", result.Explored, result.Complete)
	}
	whole := c.Bound < 0 && c.MaxEvents == 0
	said := explore.NewReport(c, result).Extent()
	if whole != strings.Contains(said, fmt.Sprintf("%d of %[1]d schedules", result.Explored)) || whole == strings.Contains(said, "at most") {
		t.Errorf("says %q; every order: %v", said, whole)
	}
}

// Replays runs a witness ten times. The steps must be the same each time.
func Replays(t *testing.T, x *explore.Explorer, w *explore.Witness) {
	t.Helper()
	for i := range 10 {
		again, err := x.Replay(t.Context(), w.Schedule)
		if err != nil {
			t.Fatalf("replay %d: %v", i+1, err)
		}
		if again.Verdict != w.Verdict || !reflect.DeepEqual(again.Steps, w.Steps) {
			t.Fatalf("replay %d of %s is different: %s, not %s:\n%+v\n%+v", i+1, w.Schedule, again.Verdict, w.Verdict, again.Steps, w.Steps)
		}
	}
}

// Main runs the tests of a binary on one processor, as shop explore does. That is faster, and leaves the other
// processors to other test binaries. Call it from TestMain.
func Main(m *testing.M) {
	undo := explore.OneProcessor(false)
	code := m.Run()
	undo()
	os.Exit(code)
}
