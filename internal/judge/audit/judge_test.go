package audit

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestJudge shows each verdict next to the most similar evidence with another verdict.
func TestJudge(t *testing.T) {
	sound := Evidence{Sums: Sums{Stocked: 100, Records: 100, UnitsSold: 100}, Demand: 200, MaxOverlap: 200}
	with := func(change func(*Evidence)) Evidence {
		e := sound
		change(&e)
		return e
	}
	going := Progress{Usual: 250 * time.Millisecond, Idle: 900 * time.Millisecond, Silence: 900 * time.Millisecond, Lease: 10 * time.Second, Wait: 5 * time.Second}
	hasty := Progress{Usual: 4 * time.Millisecond, Idle: 9 * time.Millisecond, Silence: 9 * time.Millisecond, Early: 1, Lease: 10 * time.Second, Wait: 5 * time.Second}
	stuck := Progress{Usual: 4 * time.Millisecond, Idle: 4600 * time.Millisecond, Silence: 4600 * time.Millisecond, Lease: 10 * time.Second, Wait: 5 * time.Second}
	crawling := Progress{Usual: 800 * time.Millisecond, Idle: 4600 * time.Millisecond, Silence: 4600 * time.Millisecond, Lease: 10 * time.Second, Wait: 5 * time.Second}
	for _, c := range []struct {
		name     string
		evidence Evidence
		want     verdict.Verdict
	}{
		{"sound", sound, verdict.Holds},
		{"one sale without a record", with(func(e *Evidence) { e.Lost = 1 }), verdict.Lost},
		{"a key with two records", with(func(e *Evidence) { e.Sums.Duplicates = 1 }), verdict.Duplicated},
		{"one unit too many", with(func(e *Evidence) { e.Sums.UnitsSold, e.Sums.Oversold, e.Sums.Drift = 101, 1, 1 }), verdict.Oversold},
		{"an update lost, not oversold yet", with(func(e *Evidence) { e.Sums.UnitsSold, e.Sums.Leftover, e.Sums.Drift = 99, 2, 1 }), verdict.Drifted},
		{"a unit vanished", with(func(e *Evidence) { e.Sums.UnitsSold, e.Sums.Drift = 99, -1 }), verdict.Leaked},
		{"a stock below zero", with(func(e *Evidence) { e.Sums.Leftover, e.Sums.Drift = -3, -3 }), verdict.Leaked},
		{"a record that nobody was told of", with(func(e *Evidence) { e.Untold = 1 }), verdict.Leaked},
		{"nothing sold, all asked for more than there is", with(func(e *Evidence) {
			e.Sums, e.Demand, e.SoldOut = Sums{Stocked: 100, Leftover: 100}, 40_000, 200
		}), verdict.Inconclusive},
		{"nothing sold, and told sold out", with(func(e *Evidence) {
			e.Sums, e.SoldOut, e.Denied = Sums{Stocked: 100, Leftover: 100}, 200, 200
		}), verdict.Leaked},
		{"less left than anybody refused asked for", with(func(e *Evidence) {
			e.Sums, e.SoldOut = Sums{Stocked: 100, UnitsSold: 99, Leftover: 1}, 100
		}), verdict.Holds},
		{"stock left that nobody can buy", with(func(e *Evidence) { e.Sums.UnitsSold, e.Sums.Leftover, e.Denied = 99, 1, 100 }), verdict.Leaked},
		{"refused while orders without an answer may have reserved all that is left, on a busy machine", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Denied, e.Doubtful, e.Unanswered = 38, 62, 2, 62, 62
			e.Progress.Starvation = "this process got no processor for 4.0 of 5.0 s"
		}), verdict.Inconclusive},
		{"the same on an idle machine", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Denied, e.Doubtful, e.Unanswered = 38, 62, 2, 62, 62
		}), verdict.Leaked},
		{"more left than they ordered, on a busy machine", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Denied, e.Doubtful, e.Unanswered = 38, 62, 2, 61, 61
			e.Progress.Starvation = "this process got no processor for 4.0 of 5.0 s"
		}), verdict.Leaked},
		{"stock left, buyers gave up, sales went on", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Busy, e.Progress = 90, 10, 110, going
		}), verdict.Inconclusive},
		{"stock left, buyers gave up, nothing went on", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Busy, e.Progress = 90, 10, 110, stuck
		}), verdict.Stalled},
		{"stock left, buyers were sent away", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Busy, e.Progress = 60, 40, 140, hasty
		}), verdict.Stalled},
		{"all sold, one was sent away", with(func(e *Evidence) { e.Busy, e.Progress = 1, hasty }), verdict.Holds},
		{"all sold, some gave up while others were served", with(func(e *Evidence) { e.Busy, e.Progress = 10, going }), verdict.Holds},
		{"all sold, some gave up and nothing went on", with(func(e *Evidence) { e.Busy, e.Progress = 10, stuck }), verdict.Stalled},
		{"all sold, all served, one of them after a lease", with(func(e *Evidence) {
			e.Progress = Progress{Usual: 4 * time.Millisecond, Idle: 1900 * time.Millisecond, Silence: 1900 * time.Millisecond, Lease: 2 * time.Second, Wait: 7 * time.Second}
		}), verdict.Stalled},
		{"all sold, some gave up, too slow to tell", with(func(e *Evidence) { e.Busy, e.Progress = 10, crawling }), verdict.Inconclusive},
		{"demand equals stock", with(func(e *Evidence) { e.Demand = 100 }), verdict.Inconclusive},
		{"one after the other", with(func(e *Evidence) { e.MaxOverlap = 1 }), verdict.Inconclusive},
		{"no answers", with(func(e *Evidence) { e.Sums.UnitsSold, e.Sums.Leftover, e.Unanswered = 0, 100, 200 }), verdict.Inconclusive},
		{"all sold, the rest got errors", with(func(e *Evidence) { e.Unanswered = 100 }), verdict.Inconclusive},
		{"all sold, some answers lost", with(func(e *Evidence) { e.Sold, e.Unheard, e.Unread = 95, 15, 10 }), verdict.Holds},
		{"too many lost to know the demand", with(func(e *Evidence) { e.Sold, e.Unheard, e.Unread = 100, 100, 100 }), verdict.Inconclusive},
		{"no sale acknowledged", with(func(e *Evidence) { e.Unheard = 100 }), verdict.Inconclusive},
		{"a lost update and lost answers", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Sums.Drift, e.Unheard = 99, 2, 1, 15
		}), verdict.Drifted},
		{"a leaked unit and a lost answer", with(func(e *Evidence) { e.Sums.UnitsSold, e.Sums.Drift, e.Unheard = 99, -1, 1 }), verdict.Leaked},
		{"units left, and none was refused", with(func(e *Evidence) { e.Sums.UnitsSold, e.Sums.Leftover, e.Sold = 26, 74, 26 }), verdict.Inconclusive},
		{"one error", with(func(e *Evidence) { e.Failed = 1 }), verdict.Failed},
		{"an error, and one unit too many", with(func(e *Evidence) { e.Failed, e.Sums.UnitsSold, e.Sums.Oversold, e.Sums.Drift = 1, 101, 1, 1 }), verdict.Oversold},
		{"errors, and units left that others would buy", with(func(e *Evidence) { e.Failed, e.Sums.UnitsSold, e.Sums.Leftover = 200, 0, 100 }), verdict.Failed},
		{"nothing happened", Evidence{}, verdict.Inconclusive},
		{"small, but broken", Evidence{Sums: Sums{Stocked: 1, UnitsSold: 2, Oversold: 1, Drift: 1}, Demand: 1, MaxOverlap: 1}, verdict.Oversold},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := Judge(c.evidence)
			if got != c.want || why == "" {
				t.Errorf("%s (%s), want %s", got, why, c.want)
			}
			if regexp.MustCompile(`\b1 (units|buyers|records|updates|sales)\b`).MatchString(why) {
				t.Errorf("a plural: %s", why)
			}
			if c.evidence.Sums.Leftover < 0 && !strings.HasPrefix(why, "the stock is -") {
				t.Errorf("a stock below zero: %s", why)
			}
		})
	}
}
