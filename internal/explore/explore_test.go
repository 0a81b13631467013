package explore_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
)

func TestScratch(t *testing.T) {
	open := enginetest.Embedded
	if os.Getenv("E") == engine.Local {
		open = enginetest.Local
	}
	events, err := explore.ParseEvents(strings.FieldsFunc(os.Getenv("EV"), func(r rune) bool { return r == ',' }))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(os.Getenv("S"), ",") {
		entry, _ := lockstrategy.ByName(name)
		x, err := explore.New(t.Context(), explore.Config{Engine: open(t), Strategy: entry, Buyers: 2, Stock: 1, Product: "explored", Bound: -1, Budget: 20 * time.Second,
			Events: events, Reduce: os.Getenv("R") != ""})
		if err != nil {
			t.Error(name, err)
			continue
		}
		r, err := x.Search(t.Context())
		t.Logf("%-14s explored %d complete %v cut %d violations %d %v %.2fs %.0f/s err %v", name, r.Explored, r.Complete, r.Cut, r.Violations, r.Verdicts, r.Seconds, float64(r.Explored)/r.Seconds, err)
		if r.Witness != nil && os.Getenv("W") != "" {
			t.Log(r.Witness.Schedule, r.Witness.Why, r.Witness.Outcomes)
			for _, s := range r.Witness.Steps {
				t.Logf("%d %-90s -> %-40s %d %d %s", s.Buyer, s.Command, s.Result, s.Stock, s.Records, s.Note)
			}
		}
		x.Close()
	}
}
