package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// TestTimesOf: a fault that occupies several lock servers for seconds gets a longer lease, but only if the
// strategy's lock server consists of several servers.
func TestTimesOf(t *testing.T) {
	times := Times{Wait: 7 * time.Second, Lease: 2 * time.Second}
	for _, c := range []struct {
		fault Fault
		redis string
		want  Times
	}{
		{crash(), topology.Single, times},
		{leaderKill(), topology.Single, Times{Wait: electionLease + 15*time.Second, Lease: electionLease, Ensembles: true}},
		{redisFailover(), topology.Single, times},
		{redisFailover(), topology.Sentinel, Times{Wait: longLease + 15*time.Second, Lease: longLease}},
	} {
		if got := times.TimesOf(c.fault, c.redis); got != c.want {
			t.Errorf("%s on %s: %+v, want %+v", c.fault.Name, c.redis, got, c.want)
		}
	}
}

// TestAllowed: if the holder lives, no buyer waits for a lease to expire, so the allowed time is
// shorter than a lease.
func TestAllowed(t *testing.T) {
	times := Times{Wait: 7 * time.Second, Lease: 2 * time.Second}
	redis, database := []lockstrategy.Need{lockstrategy.NeedsRedis}, []lockstrategy.Need{lockstrategy.NeedsNamedLocks}
	for _, c := range []struct {
		name  string
		fault Fault
		needs []lockstrategy.Need
		want  time.Duration
	}{
		{"a holder that is gone, a lock elsewhere", crash(), redis, 4 * time.Second},
		{"a holder that is gone, a lock of the database", crash(), database, 2 * time.Second},
		{"a holder that lives", clientGone(), redis, 1500 * time.Millisecond},
		{"a holder that lives, slow servers", latency(), redis, 1500 * time.Millisecond},
	} {
		if got := times.Allowed(c.fault, c.needs); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestMayHaveLapsed: a buyer whose lease may have ended must not write. A buyer without a lock has no lease.
func TestMayHaveLapsed(t *testing.T) {
	bed := newTestBed(t, "apple")
	bed.Times = RushTimes()
	for ago, want := range map[time.Duration]bool{bed.Times.within(): false, bed.Times.Lease * 4 / 5: true} {
		purchaser := ago.String()
		bed.Log.Add(history.Event{Kind: history.Acquired, At: time.Now().Add(-ago), Purchaser: purchaser})
		bed.Log.Add(history.Event{Kind: history.Holding, At: time.Now().Add(-bed.Times.Lease), Purchaser: "without a lock"})
		if got := bed.mayHaveLapsed(purchaser); got != want {
			t.Errorf("%s after its lock, of a lease of %s: %t", ago, bed.Times.Lease, got)
		}
	}
	if bed.mayHaveLapsed("without a lock") {
		t.Error("a buyer without a lock")
	}
}

// TestInjected: buyers that stalled during an injection break a promise, unless this process mostly
// had no processor. Then the fault proves nothing.
func TestInjected(t *testing.T) {
	const starved = "this process got no processor for 4.0 of 5.0 s"
	stalled := fmt.Errorf("inject: %w", &stalledError{what: "no buyer was served"})
	harness := errors.New("no such table")
	for _, c := range []struct {
		name            string
		err             error
		starved         string
		stalled, missed string
		want            error
	}{
		{"stalled", stalled, "", "no buyer was served", "", nil},
		{"stalled on a busy machine", stalled, starved, "", "no buyer was served, and " + starved, nil},
		{"missed on a busy machine", errNoHolder, starved, "", errNoHolder.Error(), nil},
		{"a failure of the harness on a busy machine", harness, starved, "", "", harness},
		{"no error", nil, starved, "", "", nil},
	} {
		var f Facts
		if err := f.injected(c.err, c.starved); !errors.Is(err, c.want) || f.Stalled != c.stalled || f.Missed != c.missed {
			t.Errorf("%s: stalled %q, missed %q, %v", c.name, f.Stalled, f.Missed, err)
		}
	}
}

// TestHeldUp: the holder counts as the cause of a buyer's wait only if buyers afterwards are served in a small
// part of that time. A slow machine proves nothing.
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
