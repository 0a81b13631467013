package main

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/tier"
)

// TestSixNodes: six Redlock nodes need four, so they survive two failures, as five nodes do.
func TestSixNodes(t *testing.T) {
	tier.Soak(t, "starts servers twice; no other test has six nodes")
	for _, nodes := range []string{"5", "6"} {
		cells := verifies(t, "--strategy redlock --redlock-nodes "+nodes, map[promise.Condition]verdict.Verdict{promise.NodesDown: verdict.Holds})
		two, three := "8 of 8 buyers were sold a unit with 2 of "+nodes+" nodes killed", "with 3 killed the holder was answered failed, and 0 of 3 others were sold a unit"
		if seen := cells[0].Evidence; !strings.Contains(seen, two) || !strings.Contains(seen, three) {
			t.Errorf("%s nodes: %s", nodes, seen)
		}
	}
}

// TestOutage: after a crash, a product is blocked until the lease ends.
func TestOutage(t *testing.T) {
	tier.Soak(t, "waits for a lease; no other test sets one")
	const lease = 5000 // ms
	cells := verifies(t, "--strategy redis --lease 5s", map[promise.Condition]verdict.Verdict{promise.Crash: verdict.Holds})
	if ms := cells[0].NextSaleMS; ms == nil || *ms < lease/2 || *ms > lease+2000 {
		t.Errorf("the next sale came after %v ms, with a lease of %d ms", ms, lease)
	}
	if want := "shop verify --engine local --strategy redis --fault crash --lease 5s"; cells[0].Replay != want {
		t.Errorf("replay %q, want %q", cells[0].Replay, want)
	}
}
