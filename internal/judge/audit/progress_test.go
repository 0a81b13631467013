package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/purchase"
)

// TestProgress has bursts that are stuck next to bursts that are only slow. All buyers start at
// once and give up after 5 s.
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
			if got := p.cannotTell(); got != c.cannot {
				t.Errorf("cannot tell %v, want %v; %+v", got, c.cannot, p)
			}
		})
	}
}

// TestProgressStarved: a buyer is served after 2 s of silence, above the bound of 1.5 s. The time in
// which this process got no processor does not count for a stall, and a stall during it cannot be
// excluded.
func TestProgressStarved(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	sold := func(from, to int) Answer {
		return Answer{Outcome: purchase.Sold, Start: at(from), End: at(to)}
	}
	for _, c := range []struct {
		name    string
		starved pulse.Delays
		late    int // of the last buyer
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
	// The longest silence was a busy machine, and a shorter one was not.
	answers := []Answer{sold(0, 5), sold(0, 12), sold(1000, 4012), sold(1000, 5812)}
	p := ProgressOf(answers, 2*time.Second, 7*time.Second, pulse.Delays{{From: at(1000), To: at(4000)}})
	p.Usual = 5 * time.Millisecond
	if p.Stuck() == "" || p.Idle != 1800*time.Millisecond || p.Starved != 0 {
		t.Errorf("%q, %+v; want stuck for 1.8 s", p.Stuck(), p)
	}
	// Buyers gave up during the longest silence. It decides whether the burst progressed, also if most of it
	// was a busy machine.
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
