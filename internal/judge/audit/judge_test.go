package audit

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/purchase"
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
		{"no answers, and every server runs", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Unanswered, e.IsHealthy = 0, 100, 200, true
		}), verdict.Stalled},
		{"no answers, every server runs, and the machine is busy", with(func(e *Evidence) {
			e.Sums.UnitsSold, e.Sums.Leftover, e.Unanswered, e.IsHealthy = 0, 100, 200, true
			e.Progress.Starvation = "this process got no processor for 4.0 of 5.0 s"
		}), verdict.Inconclusive},
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

// TestProgress compares bursts that are stuck with bursts that are only slow. All buyers start at once and give
// up after 5 s.
func TestProgress(t *testing.T) {
	const lease, wait = 10 * time.Second, 5 * time.Second
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	buy := func(outcome purchase.Outcome, from, to int) Answer {
		return Answer{Outcome: outcome, Start: at(from), End: at(to)}
	}
	every := func(ms, n int, outcome purchase.Outcome, after int) (all []Answer) {
		for i := range n {
			all = append(all, buy(outcome, 0, after+(i+1)*ms))
		}
		return all
	}
	gaveUp := func(n, at int) (all []Answer) {
		for range n {
			all = append(all, buy(purchase.Busy, 0, at))
		}
		return all
	}
	for _, c := range []struct {
		name    string
		answers [][]Answer
		stuck   bool
		cannot  bool
	}{
		{"all served", [][]Answer{every(4, 100, purchase.Sold, 0), every(1, 100, purchase.SoldOut, 400)}, false, false},
		{"the first who finds it sold out keeps the lock", [][]Answer{every(4, 100, purchase.Sold, 0), every(1, 1, purchase.SoldOut, 400), gaveUp(99, 5000)}, true, false},
		{"losers lose for ever, and the others are served", [][]Answer{every(4, 100, purchase.Sold, 0), every(1, 60, purchase.SoldOut, 400), gaveUp(40, 5001)}, true, false},
		{"never released", [][]Answer{every(4, 1, purchase.Sold, 0), gaveUp(199, 5000)}, true, false},
		{"four a second to the end", [][]Answer{every(250, 19, purchase.Sold, 0), gaveUp(181, 5003)}, false, false},
		{"four a second, and a standstill of two seconds", [][]Answer{every(250, 12, purchase.Sold, 0), gaveUp(188, 5000)}, false, false},
		{"they take long to be told", [][]Answer{every(250, 19, purchase.Sold, 0), gaveUp(90, 5003), gaveUp(91, 9000)}, false, false},
		{"one a second", [][]Answer{every(1000, 4, purchase.Sold, 0), gaveUp(196, 5000)}, false, true},
		{"turned away at the door", [][]Answer{every(4, 100, purchase.Sold, 0), gaveUp(100, 1)}, false, false},
		{"no buyer was sold anything", [][]Answer{gaveUp(200, 5000)}, false, true},
		{"a second crowd waits for nothing", [][]Answer{every(4, 100, purchase.Sold, 0), {buy(purchase.Busy, 1000, 6000)}}, true, false},
		{"sent away", [][]Answer{every(4, 100, purchase.Sold, 0), gaveUp(99, 12), gaveUp(1, 2600)}, false, false},
		{"none", nil, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var answers []Answer
			for _, some := range c.answers {
				answers = append(answers, some...)
			}
			p := ProgressOf(answers, lease, wait, nil)
			if sentAway := map[string]int{"sent away": 99, "turned away at the door": 100}; p.Early != sentAway[c.name] {
				t.Errorf("%d were told busy early, want %d", p.Early, sentAway[c.name])
			}
			if got := p.Stuck(); (got != "") != c.stuck {
				t.Errorf("stuck %q, want %v; %+v", got, c.stuck, p)
			}
			expect.Equal(t, p.cannotTell(), c.cannot, "cannot tell", p)
		})
	}
}

// TestProgressStarved: a buyer is served after 2 s of silence, above the bound of 1.5 s. Time in which this
// process got no processor does not count as a stall, but does not exclude a stall either.
func TestProgressStarved(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	sold := func(from, to int) Answer {
		return Answer{Outcome: purchase.Sold, Start: at(from), End: at(to)}
	}
	for _, c := range []struct {
		name    string
		starved pulse.Delays
		late    int // answer to the last buyer, in ms
		want    verdict.Verdict
		says    string
	}{
		{"an idle machine", nil, 2012, verdict.Stalled, "no buyer was served for 2.0 s while 1 buyer waited, and a purchase takes 5 ms"},
		{"a delay before the silence", pulse.Delays{{From: at(-3000), To: at(0)}}, 2012, verdict.Stalled, ""},
		{"short delays", pulse.Delays{{From: at(100), To: at(300)}, {From: at(500), To: at(700)}}, 2012, verdict.Stalled, "this process got no processor for 400 ms of that time"},
		{"one long delay", pulse.Delays{{From: at(100), To: at(1100)}}, 2012, verdict.Inconclusive, "no buyer was served for 2.0 s, and this process got no processor for 1.0 s of that time"},
		{"many delays", pulse.Delays{{From: at(100), To: at(400)}, {From: at(500), To: at(800)}}, 2012, verdict.Inconclusive, "no processor for 600 ms"},
		{"a delay, and a longer silence", pulse.Delays{{From: at(100), To: at(1100)}}, 3012, verdict.Stalled, "no buyer was served for 3.0 s"},
		{"a delay as long as the silence", pulse.Delays{{From: at(12), To: at(2012)}}, 2012, verdict.Inconclusive, "no processor for 2.0 s"},
		{"a delay, and a silence below the bound", pulse.Delays{{From: at(100), To: at(900)}}, 1212, verdict.Holds, ""},
	} {
		answers := []Answer{sold(0, 5), sold(0, 9), sold(0, 12), sold(0, c.late)}
		e := Evidence{
			Sums: Sums{Stocked: 4, UnitsSold: 4, Records: 4}, Demand: 5, MaxOverlap: 4,
			Progress: ProgressOf(answers, 2*time.Second, 7*time.Second, c.starved),
		}
		e.Progress.Usual = 5 * time.Millisecond
		if busy := c.starved.Within(at(0), at(c.late))*2 >= time.Duration(c.late)*time.Millisecond; busy != (e.Progress.Starvation != "") {
			t.Errorf("%s: starvation %q", c.name, e.Progress.Starvation)
		}
		if got, why := Judge(e); got != c.want || !strings.Contains(why, c.says) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, why, c.want, c.says)
		}
	}
	// A busy machine explains the longest silence, but not a shorter one.
	answers := []Answer{sold(0, 5), sold(0, 12), sold(1000, 4012), sold(1000, 5812)}
	p := ProgressOf(answers, 2*time.Second, 7*time.Second, pulse.Delays{{From: at(1000), To: at(4000)}})
	p.Usual = 5 * time.Millisecond
	if p.Stuck() == "" || p.Idle != 1800*time.Millisecond || p.Starved != 0 {
		t.Errorf("%q, %+v; want stuck for 1.8 s", p.Stuck(), p)
	}
	// Buyers gave up during the longest silence. That silence decides whether the burst progressed, even if a
	// busy machine explains most of it.
	answers = []Answer{sold(0, 5), sold(0, 12), sold(0, 1212), sold(1212, 1712)}
	e := Evidence{
		Sums: Sums{Stocked: 4, UnitsSold: 4, Records: 4}, Demand: 5, MaxOverlap: 4, Busy: 1,
		Progress: ProgressOf(answers, 2*time.Second, 7*time.Second, pulse.Delays{{From: at(100), To: at(1100)}}),
	}
	e.Progress.Usual = 5 * time.Millisecond
	if got, why := Judge(e); got != verdict.Inconclusive || !strings.Contains(why, "no buyer was served for 1.2 s and a purchase takes 5 ms") {
		t.Errorf("%s (%s), want inconclusive after 1.2 s", got, why)
	}
}
