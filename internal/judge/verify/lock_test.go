package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestJudgeLock compares each history that breaks a promise of the lock with the most similar one that does
// not. The lease is 2 s.
func TestJudgeLock(t *testing.T) {
	at := func(ms int, who string, kind history.Kind) history.Event {
		return history.Event{Kind: kind, At: time.UnixMilli(int64(ms)), Purchaser: who}
	}
	got := func(who string, from, to int, end history.Kind) []history.Event {
		return []history.Event{at(from, who, history.Acquired), at(to, who, end)}
	}
	both := func(some ...[]history.Event) (all []history.Event) {
		for _, s := range some {
			all = append(all, s...)
		}
		return all
	}
	excludes, keeps := LockRules{Excludes: true}, LockRules{Excludes: true, Keeps: true}
	for _, c := range []struct {
		name    string
		promise LockRules
		events  []history.Event
		want    verdict.Verdict
		why     string
	}{
		{"one after the other", excludes, both(got("a", 0, 5, history.Released), got("b", 6, 9, history.Released)), verdict.Holds, ""},
		{"one beside the other", excludes, both(got("a", 0, 7, history.Released), got("b", 6, 9, history.Released)), verdict.Unlocked, "one holder at a time"},
		{"no promise", LockRules{}, both(got("a", 0, 7, history.Released), got("b", 6, 9, history.Released)), verdict.Holds, ""},
		{"no lock is reported", keeps, []history.Event{at(0, "a", history.Call), at(9, "a", history.Return)}, verdict.Holds, ""},
		{"held beyond its lease", excludes, both(got("a", 0, 2300, history.Released), got("b", 2010, 2013, history.Released)), verdict.Unlocked, "no unit was sold twice"},
		{"lost in time, released later", excludes, both(got("a", 0, 1800, history.Lost), got("b", 2010, 2013, history.Released), []history.Event{at(2040, "a", history.Released)}), verdict.Holds, ""},
		{"lost late", excludes, both(got("a", 0, 2700, history.Lost), got("b", 2010, 2013, history.Released)), verdict.Unlocked, ""},
		{"lost a moment late", excludes, both(got("a", 0, 2100, history.Lost), got("b", 2010, 2013, history.Released)), verdict.Inconclusive, "too slow"},
		{"was killed", excludes, both(got("a", 0, 2100, history.Answered), got("b", 2010, 2013, history.Released)), verdict.Holds, ""},
		{"lost by a holder that lives", keeps, got("a", 10, 1810, history.Lost), verdict.Unlocked, "a lost the lock after 1800 ms"},
		{"lost, and not promised to be kept", excludes, got("a", 10, 1810, history.Lost), verdict.Holds, ""},
		{"found lost at the release", keeps, both(got("a", 0, 5, history.Released), []history.Event{at(6, "a", history.Lost)}), verdict.Unlocked, "a lost the lock after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell := Cell{Verdict: verdict.Holds}
			reading{&cell, c.events}.judgeLock(c.promise, 2*time.Second)
			if cell.Verdict != c.want || !strings.Contains(cell.Reason, c.why) {
				t.Errorf("%s (%s), want %s (%s)", cell.Verdict, cell.Reason, c.want, c.why)
			}
			broken := Cell{Verdict: verdict.Oversold, Reason: "more"}
			reading{&broken, c.events}.judgeLock(c.promise, 2*time.Second)
			if broken.Verdict != verdict.Oversold || broken.Reason != "more" {
				t.Errorf("a broken stock became %s (%s)", broken.Verdict, broken.Reason)
			}
		})
	}
}
