package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
)

// TestLiveness: the limit counts from the end of the fault's effect. A later sale is reported as
// late, without an effect on the verdict.
func TestLiveness(t *testing.T) {
	at := func(ms int, kind history.Kind, who, outcome string) history.Event {
		return history.Event{Kind: kind, At: time.UnixMilli(int64(1000 + ms)), Purchaser: who, Outcome: outcome}
	}
	sold := func(ms int) history.Event { return at(ms, history.Answered, "next-0", "sold") }
	struck := at(0, history.Struck, "", "SIGKILL")
	for _, c := range []struct {
		name   string
		events []history.Event
		bound  int64
		want   string
	}{
		{"nothing was struck", []history.Event{sold(5)}, 0, ""},
		{"in time", []history.Event{struck, sold(5)}, 10, "5 ms after the fault, of 10 ms allowed"},
		{"late", []history.Event{struck, sold(11)}, 10, "late: "},
		{"never", []history.Event{struck}, 10, "no other buyer"},
		{"the holder does not count", []history.Event{struck, at(1, history.Answered, "holder", "sold")}, 10, "no other buyer"},
		{"the holder went on later", []history.Event{struck, at(20, history.Resumed, "holder", ""), sold(25)}, 30, "25 ms after the fault, of 30 ms allowed"},
		{"struck again", []history.Event{struck, at(50, history.Struck, "", "back"), sold(55)}, 60, "55 ms after the fault, of 60 ms allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cell Cell
			reading{&cell, c.events}.bound(10 * time.Millisecond)
			reading{&cell, c.events}.read()
			if got := liveness(&cell); cell.BoundMS != c.bound || !strings.Contains(got, c.want) || !strings.Contains(cell.Evidence, got) {
				t.Errorf("bound %d, %q in %q; want %d, %q", cell.BoundMS, got, cell.Evidence, c.bound, c.want)
			}
		})
	}
}
