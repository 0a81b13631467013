package explore_test

import (
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
)

// BenchmarkBroken measures the time to the first violation for each strategy that breaks on SQLite
// and Redis. See docs/reference/benchmarks.md.
func BenchmarkBroken(b *testing.B) {
	defer explore.OneProcessor(false)() // as the command does
	e, err := engine.Open(b.Context(), engine.Config{Name: engine.Embedded, Wait: enginetest.Wait, Conns: 4})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for b.Loop() {
		for _, broken := range []struct {
			strategy string
			event    explore.Event
		}{
			{"none", ""},
			{"early-unlock", ""},
			{"mutex", ""},
			{"setnx", explore.Crash},
			{"setnx-expire", explore.Crash},
			{"setnx-expire", explore.Expire},
			{"getset", explore.Expire},
			{"setnx-ttl", explore.Expire},
			{"token-get-del", explore.Expire},
			{"redis", explore.Expire},
			{"watchdog", explore.Expire},
			{"redisson", explore.Expire},
			{"multilock", explore.Expire},
			{"redlock", explore.Expire},
			{"redlock", explore.Forget},
			{"redis-decr", explore.Crash},
			{"redis-decr", explore.Forget},
		} {
			entry := exploretest.Entry(b, broken.strategy)
			c := exploretest.Config(e, entry)
			c.First, c.Symmetry = true, true
			if broken.event != "" {
				c.Events = []explore.Event{broken.event}
			}
			first(b, c)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s")
}

// first searches for a violation, and fails without one.
func first(b *testing.B, c explore.Config) {
	b.Helper()
	x, err := explore.New(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	result, err := x.Search(b.Context())
	if err != nil || result.Violations == 0 {
		b.Fatalf("%s: nothing was found in %d schedules: %v", c.Strategy.Name, result.Explored, err)
	}
}
