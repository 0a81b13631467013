package explore_test

import (
	"context"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/tier"
)

// TestFronts: every strategy keeps its promise behind each part of the shop that may run before it, with up to one
// preemption. A failing read of the stock causes no refusal.
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
				continue // a worker's commands belong to no buyer; and without preemptions, a broken strategy would not break
			}
			t.Run(entry.Name+"/"+string(front), func(t *testing.T) {
				if !slices.Contains([]string{"none", "for-update", "optimistic", "queue", "bucketed", "coalesced", "setnx", "redis-lua"}, entry.Name) {
					tier.Soak(t, "make test searches one strategy of each kind")
				}
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

// TestJudgedFirst: the search first preempts a buyer before the change that a rule judges, even if the buyer sends many
// commands after it.
func TestJudgedFirst(t *testing.T) {
	buyer := []command{{"read", "a", "x"}, {"add", "a", "x"}}
	for range 20 {
		buyer = append(buyer, command{"write", "a", "y"})
	}
	runs := map[string]int{}
	for _, judged := range []string{"", "x"} {
		l := &little{judged: judged, buyers: [][][]command{{buyer}, {buyer}}, wrong: func(w *world) string {
			if w.answers[1][0] == w.answers[2][0] {
				return "both have read the same"
			}
			return ""
		}}
		c := littleConfig(l)
		c.First, c.Reduce = true, true
		r := searchLittle(t, c, l)
		if r.Violations != 1 {
			t.Fatalf("%q: %d of %d runs break", judged, r.Violations, r.Runs)
		}
		runs[judged] = r.Runs
	}
	if runs["x"] > 3 || runs[""] < 20 {
		t.Errorf("%d runs until a schedule breaks, and %d if no rule judges; want at most 3, and at least 20", runs["x"], runs[""])
	}
}

// TestEarlySoldOut: a mistaken strategy answers "sold out" because its own row is empty, although another row has a unit.
// The search counts this if the buyer that would have got the unit crashes. It never counts the corrected strategy.
func TestEarlySoldOut(t *testing.T) {
	for _, mistake := range []bool{true, false} {
		config := exploretest.Config(enginetest.Embedded(t), lockstrategy.Entry{
			Name: "planted",
			New:  func(d lockstrategy.Deps) purchase.Strategy { return ownRow{d, mistake} },
			Traits: lockstrategy.Traits{
				Left: product.Left, KeyDecides: true,
			},
		})
		config.Parts, config.Events = 2, []explore.Event{explore.Crash}
		result := search(t, config)
		if !result.Complete || result.Violations > 0 || (result.Early > 0) != mistake {
			t.Errorf("mistake %v: %d of %d schedules are early, complete %v, %d violations", mistake, result.Early, result.Explored, result.Complete, result.Violations)
		}
		if notes := explore.NewReport(config, result).Notes(); (len(notes) > 0) != mistake {
			t.Errorf("mistake %v: noted %q", mistake, notes)
		}
	}
}

// ownRow takes a unit from the buyer's own row. Without the mistake, it also checks the other row.
type ownRow struct {
	deps    lockstrategy.Deps
	mistake bool
}

func (s ownRow) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Strategy: "planted"}
	rows := []int64{0, 1}
	switch {
	case o.Purchaser == "buyer-2" && s.mistake:
		rows = []int64{1}
	case o.Purchaser == "buyer-2":
		rows = []int64{1, 0}
	}
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		for _, row := range rows {
			took, err := stock.TakeFromPart(tx, o.Product, row, o.Amount)
			switch {
			case err != nil:
				return purchase.DatabaseError(ctx, "take the units", err)
			case took:
				return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
			}
		}
		return purchase.ErrSoldOut
	})
	return receipt, err
}

// TestCheckConnects: while the first read of a sold-out check connects to its server, its buyer does not count as
// waiting for another buyer.
func TestCheckConnects(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		exploretest.Check(t, open(t), exploretest.Entry(t, "for-update"), exploretest.Expectation{Want: verdict.Holds, Config: func(c *explore.Config) {
			c.Before, c.Bound = own.FailingRead, 1
		}})
	})
}
