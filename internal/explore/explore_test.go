package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/verdict"
)

// These tests do not run side by side: the explorer looks at every goroutine of
// the process.

const (
	expire = explore.Expire
	crash  = explore.Crash
	forget = explore.Forget
	renew  = explore.Renew

	timeout = explore.Timeout
)

// expectation is one row: what two buyers of one unit can come to.
type expectation struct {
	strategy string
	events   []explore.Event
	want     verdict.Verdict
	config   func(c *explore.Config) // may be nil
	on       string                  // "mysql" or "sqlite": on that database only
}

func bound(n int) func(c *explore.Config) {
	return func(c *explore.Config) { c.Bound = n }
}

// whole does not end at the first violation.
func whole(n int) func(c *explore.Config) {
	return func(c *explore.Config) { c.Bound, c.First = n, false }
}

func shared(c *explore.Config) { c.Shared = true }

// alike begins with buyer 1: half the orders.
func alike(n int) func(c *explore.Config) {
	return func(c *explore.Config) { c.Bound, c.Alike = n, true }
}

// few allows so many events in a schedule, and so many preemptions.
func few(events, preemptions int) func(c *explore.Config) {
	return func(c *explore.Config) { c.MaxEvents, c.Bound = events, preemptions }
}

// promises are what the catalogue claims, with what each of them takes.
func promises() []expectation {
	return []expectation{
		{"none", nil, verdict.Oversold, nil, ""},
		{"transaction", nil, verdict.Oversold, nil, "mysql"},
		{"transaction", nil, verdict.Holds, nil, "sqlite"}, // it refuses a stale snapshot
		{"early-unlock", nil, verdict.Oversold, nil, ""},
		{"early-unlock", nil, verdict.Oversold, shared, ""},
		{"mutex", nil, verdict.Oversold, nil, ""}, // two processes
		{"mutex", nil, verdict.Holds, shared, ""},
		{"queue", nil, verdict.Holds, nil, ""},
		{"queue", nil, verdict.Holds, shared, ""},
		{"queue", explore.Events(), verdict.Holds, bound(2), ""},
		{"for-update", nil, verdict.Holds, nil, ""},
		{"for-update", explore.Events(), verdict.Holds, nil, ""},
		{"optimistic", nil, verdict.Holds, nil, ""},
		{"optimistic", explore.Events(), verdict.Holds, bound(2), ""},
		{"conditional", nil, verdict.Holds, nil, ""},
		{"conditional", explore.Events(), verdict.Holds, bound(2), ""},
		{"check-after", nil, verdict.Holds, nil, ""},
		{"check-after", explore.Events(), verdict.Holds, bound(2), ""},
		{"serializable", nil, verdict.Holds, nil, ""},
		{"serializable", explore.Events(), verdict.Holds, bound(2), ""},
		{"named-lock", nil, verdict.Holds, nil, "mysql"},
		{"named-lock", explore.Events(), verdict.Holds, nil, "mysql"},
		{"setnx", nil, verdict.Holds, nil, ""},
		{"setnx", []explore.Event{crash}, verdict.Stalled, nil, ""},
		{"setnx-expire", nil, verdict.Holds, nil, ""},
		{"setnx-expire", []explore.Event{crash}, verdict.Stalled, nil, ""},
		{"setnx-ttl", nil, verdict.Holds, nil, ""},
		{"setnx-ttl", []explore.Event{crash}, verdict.Holds, nil, ""},
		{"setnx-ttl", []explore.Event{expire}, verdict.Oversold, nil, ""},
		{"getset", nil, verdict.Holds, nil, ""},
		{"getset", []explore.Event{expire}, verdict.Oversold, nil, ""},
		{"token-get-del", nil, verdict.Holds, nil, ""},
		{"token-get-del", []explore.Event{expire}, verdict.Oversold, nil, ""},
		{"redis", nil, verdict.Holds, nil, ""},
		{"redis", []explore.Event{expire}, verdict.Oversold, nil, ""},
		{"redis", []explore.Event{forget}, verdict.Oversold, nil, ""},
		{"watchdog", nil, verdict.Holds, nil, ""},
		{"watchdog", []explore.Event{expire}, verdict.Oversold, nil, ""},
		{"watchdog", []explore.Event{renew}, verdict.Holds, bound(1), ""},
		{"watchdog", []explore.Event{expire, renew}, verdict.Oversold, nil, ""},
		{"redisson", nil, verdict.Holds, nil, ""},
		{"redisson", []explore.Event{expire}, verdict.Oversold, nil, ""},
		{"redisson", []explore.Event{renew}, verdict.Holds, bound(1), ""},
		{"redisson", []explore.Event{renew}, verdict.Holds, func(c *explore.Config) { c.Shared, c.Bound = true, 0 }, ""},
		{"fenced", nil, verdict.Holds, nil, ""},
		{"fenced", explore.Events(), verdict.Holds, few(1, 1), "mysql"},
		{"redis-decr", []explore.Event{crash}, verdict.Leaked, nil, ""},
		{"redis-decr", []explore.Event{forget}, verdict.Oversold, whole(1), ""}, // the first to break leaks
		{"redis-decr", nil, verdict.Holds, bound(3), "sqlite"},
		{"redis-lua", nil, verdict.Holds, bound(1), ""},
		{"redis-lua", explore.Events(), verdict.Holds, few(1, 0), ""},
		{"redlock", nil, verdict.Holds, bound(0), ""},
		// Two preemptions are what it takes. Each search on one of them, for they are long;
		// the witness is replayed on both (TestRedlockForgets).
		{"redlock", []explore.Event{forget}, verdict.Holds, alike(1), "sqlite"},
		{"redlock", []explore.Event{forget}, verdict.Oversold, alike(2), "mysql"},
		{"multilock", nil, verdict.Holds, bound(0), ""},
		{"multilock", []explore.Event{renew}, verdict.Holds, bound(0), ""},
	}
}

// TestStrategies: the catalogue's claims, in every order or within the bound.
func TestStrategies(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		for _, want := range promises() {
			if want.on != "" && want.on != e.DB.Name() {
				continue
			}
			t.Run(strings.Join(append([]string{want.strategy}, names(want.events)...), "+"), func(t *testing.T) {
				entry, ok := lockstrategy.ByName(want.strategy)
				if !ok {
					t.Fatalf("no strategy %s", want.strategy)
				}
				check(t, e, entry, want)
			})
		}
	})
}

func names(events []explore.Event) (names []string) {
	for _, e := range events {
		names = append(names, string(e))
	}
	return names
}

// check explores and compares. A violation need only be found once; that there
// is none takes all schedules.
func check(t *testing.T, e *engine.Engine, entry lockstrategy.Entry, want expectation) {
	t.Helper()
	c := config(e, entry)
	c.Events, c.First = want.events, true
	if want.config != nil {
		want.config(&c)
	}
	x := open(t, c)
	result, err := x.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want.want == verdict.Holds {
		if result.Violations > 0 {
			t.Fatalf("%s: %s", result.Witness.Verdict, result.Witness.Schedule)
		}
		if !result.Complete || result.Explored < 2 {
			t.Fatalf("explored %d, complete %v: proves nothing", result.Explored, result.Complete)
		}
		whole := c.Bound < 0 && c.MaxEvents == 0
		said := explore.NewReport(c, result).Extent()
		if whole != strings.Contains(said, fmt.Sprintf("%d of %[1]d schedules", result.Explored)) || whole == strings.Contains(said, "at most") {
			t.Errorf("says %q; every order: %v", said, whole)
		}
		return
	}
	if result.Witness == nil || result.Verdicts[want.want] == 0 {
		t.Fatalf("explored %d, %v, witness %+v, want %s", result.Explored, result.Verdicts, result.Witness, want.want)
	}
	replays(t, x, result.Witness)
}

func config(e *engine.Engine, entry lockstrategy.Entry) explore.Config {
	return explore.Config{Engine: e, Strategy: entry, Buyers: 2, Stock: 1, Product: "explored", Bound: -1, Budget: 5 * time.Minute}
}

func open(t *testing.T, c explore.Config) *explore.Explorer {
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

// replays: ten of ten, step by step the same.
func replays(t *testing.T, x *explore.Explorer, w *explore.Witness) {
	t.Helper()
	for i := range 10 {
		again, err := x.Replay(t.Context(), w.Schedule)
		if err != nil {
			t.Fatalf("replay %d: %v", i+1, err)
		}
		if again.Verdict != w.Verdict || len(again.Steps) != len(w.Steps) {
			t.Fatalf("replay %d of %s is different: %s in %d steps, not %s in %d", i+1, w.Schedule, again.Verdict, len(again.Steps), w.Verdict, len(w.Steps))
		}
		for step := range w.Steps {
			if again.Steps[step] != w.Steps[step] {
				t.Fatalf("replay %d of %s, step %d:\n%+v\n%+v", i+1, w.Schedule, step+1, again.Steps[step], w.Steps[step])
			}
		}
	}
}

// TestShortest: the witness of none is the one that a person would draw, and no
// schedule is shorter.
func TestShortest(t *testing.T) {
	entry, _ := lockstrategy.ByName("none")
	x := open(t, config(enginetest.Embedded(t), entry))
	result, err := x.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !result.Complete || result.Explored != 92 || result.Violations != 90 {
		t.Errorf("explored %d, complete %v, %d violations; want 92, true, 90", result.Explored, result.Complete, result.Violations)
	}
	if got, want := result.Witness.Schedule, "v1:none:b2:s1:1*2.2*5.1*3"; got != want {
		t.Errorf("witness %s, want %s", got, want)
	}
	last := result.Witness.Steps[len(result.Witness.Steps)-1]
	if last.Stock != 0 || last.Records != 2 {
		t.Errorf("after the last step: stock %d, records %d", last.Stock, last.Records)
	}
}

// BenchmarkExplore is the schedules a second of docs/benchmarks.md, on one
// processor as shop explore runs them.
func BenchmarkExplore(b *testing.B) {
	for _, c := range []struct{ engine, strategy string }{
		{engine.Embedded, "none"}, {engine.Local, "none"}, {engine.Local, "for-update"},
	} {
		b.Run(c.engine+"/"+c.strategy, func(b *testing.B) {
			defer explore.OneProcessor(c.engine == engine.Local)() // as the command does
			e, err := engine.Open(b.Context(), engine.Config{Name: c.engine, Wait: enginetest.Wait, Conns: 4})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			entry, _ := lockstrategy.ByName(c.strategy)
			x, err := explore.New(b.Context(), config(e, entry))
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			schedules := 0
			for b.Loop() {
				result, err := x.Search(b.Context())
				if err != nil || !result.Complete {
					b.Fatal(result, err)
				}
				schedules += result.Explored
			}
			b.ReportMetric(float64(schedules)/b.Elapsed().Seconds(), "schedules/s")
		})
	}
}

// TestForeignUnlock: token-get-del deletes the other's lock, and the witness
// says so.
func TestForeignUnlock(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, start func(t *testing.T) *engine.Engine) {
		entry, _ := lockstrategy.ByName("token-get-del")
		c := config(start(t), entry)
		c.Events, c.Bound = []explore.Event{expire}, 2
		x := open(t, c)
		result, err := x.Search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := result.ForeignWitness
		if w == nil || !slices.ContainsFunc(w.Steps, func(s explore.Step) bool {
			return s.Note == "it has deleted the lock of buyer 2" && strings.HasPrefix(s.Command, "DEL ")
		}) {
			t.Fatalf("no step says it: %+v", w)
		}
		replays(t, x, w)
	})
}

// TestReduced: the reduction leaves out no verdict that the whole search finds.
func TestReduced(t *testing.T) {
	e := enginetest.Embedded(t)
	for name, all := range map[string][][]explore.Event{
		"none": {nil}, "transaction": {nil}, "setnx": {nil, {crash}}, "optimistic": {nil}, "early-unlock": {nil, {timeout}}, "conditional": {{timeout}},
	} {
		for _, events := range all {
			t.Run(strings.Join(append([]string{name}, names(events)...), "+"), func(t *testing.T) {
				entry, _ := lockstrategy.ByName(name)
				c := config(e, entry)
				c.Events = events
				whole, err := open(t, c).Search(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c.Reduce = true
				reduced, err := open(t, c).Search(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if !whole.Complete || !reduced.Complete || reduced.Explored > whole.Explored {
					t.Fatalf("explored %d and %d", whole.Explored, reduced.Explored)
				}
				for v := range whole.Verdicts {
					if reduced.Verdicts[v] == 0 {
						t.Errorf("%s is lost: %v, %v", v, whole.Verdicts, reduced.Verdicts)
					}
				}
				t.Logf("%d schedules, %d reduced", whole.Explored, reduced.Explored)
			})
		}
	}
}

// TestThreeBuyers within the bound, and what the report calls it.
func TestThreeBuyers(t *testing.T) {
	e := enginetest.Embedded(t)
	for _, want := range []expectation{
		{"none", nil, verdict.Oversold, bound(2), ""},
		{"setnx", nil, verdict.Holds, bound(1), ""},
		{"conditional", nil, verdict.Holds, bound(1), ""},
	} {
		entry, _ := lockstrategy.ByName(want.strategy)
		check(t, e, entry, expectation{want.strategy, want.events, want.want, func(c *explore.Config) {
			want.config(c)
			c.Buyers = 3
		}, ""})
	}
	c := explore.Config{Engine: e, Bound: 2}
	if got := explore.NewReport(c, explore.Result{Explored: 7, Complete: true}).Extent(); !strings.Contains(got, "bound 2") || strings.Contains(got, "7 of 7") {
		t.Errorf("%q", got)
	}
}

// TestInterrupted: what was explored until then is there.
func TestInterrupted(t *testing.T) {
	entry, _ := lockstrategy.ByName("none")
	c := config(enginetest.Embedded(t), entry)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	c.Progress = func(explored, _ int) {
		if explored == 20 {
			cancel(stop)
		}
	}
	result, err := open(t, c).Search(ctx)
	if !errors.Is(err, stop) || result.Explored != 20 || result.Complete || result.Witness == nil {
		t.Errorf("%v, %+v", err, result)
	}
}

// TestReplayRefused: a line of something else is no result.
func TestReplayRefused(t *testing.T) {
	entry, _ := lockstrategy.ByName("none")
	x := open(t, config(enginetest.Embedded(t), entry))
	for _, c := range []struct{ line, says string }{
		{"v1:redis:b2:s1:1.2", "is of redis"},
		{"v1:none:b3:s1:1.2", "with 3 buyers"},
		{"v9:none:b2:s1:1.2", "version v9"},
		{"v1:none:b2:s1:1*2", "ends before the buyers do"},
		{"v1:none:b2:s1:1*9", "step 6 of the schedule is 1"},
		{"v1:none:b2:s1:1*5.2.2", "done after 6"},
		{"v1:none:b2:s1:jump", `"jump" is no step`},
		{"hello", "no replay line"},
	} {
		if _, err := x.Replay(t.Context(), c.line); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something with %q", c.line, err, c.says)
		}
	}
}

// TestRedlockForgets: the shortest witness (docs/witnesses/redlock.md) is one on
// both databases. It is Kleppmann's case: buyer 1 loses a split vote, comes back
// when node b has forgotten buyer 2's key, and has a majority beside it.
func TestRedlockForgets(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, start func(t *testing.T) *engine.Engine) {
		entry, _ := lockstrategy.ByName("redlock")
		c := config(start(t), entry)
		c.Events = []explore.Event{forget}
		x := open(t, c)
		w, err := x.Replay(t.Context(), "v1:redlock:b2:s1:1a.2a.2b.forget-b.2c.2.1b.1c.1*5.1a.1b.1c.2*4.2a.2b.2c")
		if err != nil {
			t.Fatal(err)
		}
		if w.Verdict != verdict.Oversold {
			t.Fatalf("%s: %s", w.Verdict, w.Why)
		}
		replays(t, x, w)
	})
}
