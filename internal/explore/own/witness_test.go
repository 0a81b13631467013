package own_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestForeignUnlock: token-get-del deletes another buyer's lock, and the witness says so.
func TestForeignUnlock(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, start func(t *testing.T) *engine.Engine) {
		entry := exploretest.Entry(t, "token-get-del")
		c := exploretest.Config(start(t), entry)
		c.Events, c.Bound = []explore.Event{explore.Expire}, 2
		x := exploretest.Open(t, c)
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
		exploretest.Replays(t, x, w)
	})
}

// TestRedlockForgets: the shortest witness (docs/reference/witnesses/redlock.md) breaks redlock on both
// databases. It is Kleppmann's case: buyer 1 loses a split vote and comes back after node b has
// forgotten buyer 2's key. Then both buyers have a majority.
func TestRedlockForgets(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, start func(t *testing.T) *engine.Engine) {
		entry := exploretest.Entry(t, "redlock")
		c := exploretest.Config(start(t), entry)
		c.Events = []explore.Event{explore.Forget}
		x := exploretest.Open(t, c)
		w, err := x.Replay(t.Context(), "v1:redlock:b2:s1:1a.2a.2b.forget-b.2c.2.1b.1c.1*5.1a.1b.1c.2*4.2a.2b.2c")
		if err != nil {
			t.Fatal(err)
		}
		if w.Verdict != verdict.Oversold {
			t.Fatalf("%s: %s", w.Verdict, w.Why)
		}
		exploretest.Replays(t, x, w)
	})
}
