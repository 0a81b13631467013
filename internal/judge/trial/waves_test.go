package trial

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/promise"
)

// TestWaves: without Crowd.For, each strategy has one wave with all buyers. With it, the number of buyers changes
// and the demand stays above the stock. With Crowd.Every, the second round has the fault.
func TestWaves(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b"}
	short, long := Crowd{Buyers: 200, Stock: 100}, Crowd{Buyers: 101, Stock: 100, For: time.Hour}
	number := 0
	for w := range short.Waves(names) {
		number++
		if w.Strategy != names[number-1] || w.Number != number || w.Buyers != 200 || w.Stock != 100 {
			t.Errorf("%+v", w)
		}
	}
	expect.Equal(t, number, 2, "waves")
	buyers := map[int]bool{}
	for w := range long.Waves(names) {
		if buyers[w.Buyers] = true; int64(w.Buyers) <= w.Stock {
			t.Errorf("%+v: the demand is not above the stock", w)
		}
		if w.Number == 8 {
			break
		}
	}
	expect.Equal(t, len(buyers), 4, "numbers of buyers", buyers)
	killing := Crowd{Buyers: 200, Stock: 100, For: time.Nanosecond, Every: time.Hour, Fault: promise.Crash}
	var faults []promise.Condition
	for w := range killing.Waves(names) {
		faults = append(faults, w.Fault)
	}
	if len(faults) != 4 || faults[0] != "" || faults[1] != "" || faults[2] != promise.Crash || faults[3] != promise.Crash {
		t.Errorf("faults %q", faults)
	}
}
