package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/purchase"
)

// TestHeldUp: the holder was in the way only if a buyer of another product would otherwise have
// been served in a small part of the time. A slow machine proves nothing.
func TestHeldUp(t *testing.T) {
	start := time.Unix(0, 0)
	took := func(outcome purchase.Outcome, d time.Duration) buyers.Answer {
		return buyers.Answer{Answer: audit.Answer{Outcome: outcome, Start: start, End: start.Add(d)}}
	}
	times := RushTimes()
	wait, lease := times.Wait, times.Lease
	const sold, busy = purchase.Sold, purchase.Busy
	for _, c := range []struct {
		name                  string
		meanwhile, afterwards []buyers.Answer
		stalled               bool
		missed                string
		starved               pulse.Delays
	}{
		{"it waited", []buyers.Answer{took(busy, wait)}, []buyers.Answer{took(sold, wait/100)}, true, "", nil},
		{"one of two did", []buyers.Answer{took(sold, wait/100), took(busy, wait)}, []buyers.Answer{took(sold, wait/100)}, true, "", nil},
		{"it waited until the lease had run out", []buyers.Answer{took(sold, lease)}, []buyers.Answer{took(sold, wait/100)}, true, "", nil},
		{"each buyer is slow", []buyers.Answer{took(busy, wait)}, []buyers.Answer{took(sold, wait/100), took(sold, wait/2)}, false, "too slow", nil},
		{"no buyer is served", []buyers.Answer{took(busy, wait)}, []buyers.Answer{took(busy, wait)}, false, "also when no holder was in its section", nil},
		{"an error at once", []buyers.Answer{took(purchase.Failed, wait/1000)}, []buyers.Answer{took(sold, wait/100)}, false, "too slow", nil},
		{"the machine was busy while it waited", []buyers.Answer{took(busy, wait)}, []buyers.Answer{took(sold, wait/100)}, false, fmt.Sprintf("no processor for %.1f of %.1f s: the machine is too slow", (wait * 97 / 100).Seconds(), wait.Seconds()), pulse.Delays{{From: start, To: start.Add(wait * 97 / 100)}}},
	} {
		stalled, missed := heldUp(c.meanwhile, c.afterwards, times, c.starved)
		if (stalled != "") != c.stalled || (missed != "") == c.stalled || !strings.Contains(missed, c.missed) {
			t.Errorf("%s: stalled %q, missed %q", c.name, stalled, missed)
		}
	}
}
