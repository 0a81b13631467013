package explore_test

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestShortestWay: the shortest path to a violation is the witness of the search. From each of its
// steps, the rest of it is the shortest path. Where no path leads to a violation, the result says
// so.
func TestShortestWay(t *testing.T) {
	x := exploretest.Open(t, exploretest.Config(enginetest.Embedded(t), exploretest.Entry(t, "none")))
	result, err := x.Search(t.Context())
	if err != nil || result.Witness == nil {
		t.Fatal(result, err)
	}
	s, err := explore.ParseSchedule(result.Witness.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	broken := func(e *explore.Ended) bool { return e.Verdict != verdict.Holds }
	for n := range s.Tokens {
		w, err := x.Shortest(t.Context(), s.Tokens[:n], broken)
		if err != nil || !w.Complete || !slices.Equal(w.Tokens, s.Tokens[n:]) {
			t.Errorf("after %v: %+v, %v; want %v", s.Tokens[:n], w, err, s.Tokens[n:])
		}
		if n == 0 && (w.Switches != explore.Switches(s.Tokens) || w.Explored != result.Explored) {
			t.Errorf("%+v, and the search explored %d", w, result.Explored)
		}
	}
	w, err := x.Shortest(t.Context(), nil, func(e *explore.Ended) bool { return e.Verdict == verdict.Stalled })
	if err != nil || w.Tokens != nil || !w.Complete {
		t.Errorf("of what cannot be: %+v, %v", w, err)
	}
	if _, err := x.With(func(c *explore.Config) { c.Full = true }).Shortest(t.Context(), nil, broken); err == nil {
		t.Error("without merged states there is no shortest way")
	}
}
