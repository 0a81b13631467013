package explore_test

import (
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/tier"
)

// TestFronts: every strategy keeps its promise behind each part of the shop, with at most one
// preemption. A failing read of the stock refuses no buyer.
func TestFronts(t *testing.T) {
	tier.Test(t, "a search of each strategy")
	e := enginetest.Embedded(t)
	for _, entry := range lockstrategy.All() {
		promised, possible := entry.Explored("explore", e.Database)
		if !possible || explore.Ungated(entry) != "" || entry.Missing(onengine.Deps(e)) != "" {
			continue
		}
		for _, front := range own.Fronts() {
			if front == own.Admission && entry.WritesLater || front == own.FailingRead && promised != verdict.Holds {
				continue // a worker's commands belong to no buyer; without preemptions a broken strategy does not break
			}
			t.Run(entry.Name+"/"+string(front), func(t *testing.T) {
				config := exploretest.Config(e, entry)
				config.Before, config.Shared, config.Bound = front, front == own.Admission, 1
				if front == own.FailingRead {
					config.Bound = 0 // a wrong refusal does not depend on the other buyer
				}
				if entry.Left != nil {
					config.Parts = 2
				}
				result := search(t, config)
				if !result.Complete || result.Explored < 2 {
					t.Fatalf("explored %d, complete %v: proves nothing", result.Explored, result.Complete)
				}
				if promised == verdict.Holds && result.Violations > 0 {
					t.Errorf("%v; %+v", result.Verdicts, result.Witness)
				}
				if promised != verdict.Holds && front != own.Admission && result.Verdicts[promised] == 0 {
					t.Errorf("%v, want %s", result.Verdicts, promised)
				}
			})
		}
	}
}
