package verify

import (
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// LockRules are the promises of the lock itself under one condition. The zero value promises nothing.
type LockRules struct {
	Excludes bool // there is at most one holder at a time
	Keeps    bool // a holder keeps the lock to the end of its critical section
}

// judgeLock judges the history of the lock: when it was acquired, released, and known to be lost. A violation
// of stock or records that the cell already has stays, since it says more. If the strategy reports no lock,
// there is nothing to judge.
//
// All processes run on one machine, so their times are comparable. A holder reports the lock after acquiring
// it and before releasing it, so reports that overlap prove two holders. Only a loss may be reported late, on
// a busy machine. So an overlap proves nothing if the old holder reports its loss within a quarter of a lease
// after the new holder got the lock.
func (c reading) judgeLock(p LockRules, lease time.Duration) {
	if c.Verdict.IsBreak() {
		return
	}
	holdings, _, _ := holdingsIn(c.events)
	two, late := overlapping(holdings, lease)
	switch taken := lost(holdings); {
	case p.Excludes && two != nil:
		c.Verdict, c.TwoHolders = verdict.Unlocked, two
		c.Reason = "the lock's promise of one holder at a time broke, and no unit was sold twice"
	case p.Keeps && taken != nil:
		c.Verdict = verdict.Unlocked
		c.Reason = fmt.Sprintf("%s lost the lock after %.0f ms, though its process ran on and the lock's servers answered: the lock's promise to be renewed broke, and no unit was sold twice",
			taken.Purchaser, taken.ToMS-taken.FromMS)
	case p.Excludes && late != nil:
		c.Verdict, c.TwoHolders = verdict.Inconclusive, late
		c.Reason = fmt.Sprintf("%s knew that it had lost the lock %.0f ms after %s had come in: the lock or the machine was too slow",
			late.First.Purchaser, late.First.ToMS-late.Second.FromMS, late.Second.Purchaser)
	}
}

// overlapping returns the first overlap of holdings that proves two holders (`two`). It also returns the first
// overlap that proves nothing, because the old holder may have reported its loss late (`late`). A buyer in a
// killed process does not count as a holder, since it cannot write.
func overlapping(holdings []Holding, lease time.Duration) (two, late *Overlap) {
	for i, second := range holdings {
		for _, first := range holdings[:i] {
			if first.Purchaser == second.Purchaser || first.ToMS <= second.FromMS || first.Ended == endedKilled || first.Ended == endedNever {
				continue
			}
			pair := &Overlap{first, second}
			slow := first.Ended == string(history.Lost) && first.ToMS-second.FromMS < float64((lease/4).Milliseconds())
			switch {
			case !slow:
				return pair, late
			case late == nil:
				late = pair
			}
		}
	}
	return nil, late
}

// lost returns the first holding that ended because the lease was lost.
func lost(holdings []Holding) *Holding {
	for _, h := range holdings {
		if h.Ended == string(history.Lost) || h.Ended == endedNotHeld {
			return &h
		}
	}
	return nil
}

// judgeForeignRelease judges n schedules in which a buyer deleted another buyer's lock. The deletion is a
// violation even if the stock is right by luck. It is none if the lock is `known` to allow it.
func judgeForeignRelease(c *Cell, n int, known bool) (broke bool) {
	text := fmt.Sprintf("in %s a buyer deletes the lock of another", plural.Count(n, "schedule"))
	if known {
		c.Reason += "; " + text + ", which is known of it"
		return false
	}
	if c.Verdict.IsBreak() {
		text += fmt.Sprintf(" (and it is %s: %s)", c.Verdict, c.Reason)
	}
	c.Verdict, c.Reason = verdict.Unlocked, text+": the lock's promise that only its holder frees it broke"
	return true
}
