// Package verdict names the possible results of testing a lock strategy. The catalogue of strategies promises
// verdicts and the tests report them; internal/judge/audit judges. The function Confirm decides whether to
// repeat a run.
package verdict

// A Verdict is the result of one run.
type Verdict string

// The verdicts. All except the last two are violations, the worst first.
const (
	Lost            Verdict = "lost"            // an acknowledged sale has no record
	Diverged        Verdict = "diverged"        // the nodes of one cluster permanently differ in stock or records
	Duplicated      Verdict = "duplicated"      // one idempotency key has more than one record
	Oversold        Verdict = "oversold"        // more units sold than were ever stocked
	Drifted         Verdict = "drifted"         // units sold + leftover > stocked: updates were lost
	Leaked          Verdict = "leaked"          // units sold + leftover < stocked, or units sold to a refused buyer: units vanished
	Broken          Verdict = "broken"          // an invariant in the file of a user's program does not hold
	Unlocked        Verdict = "unlocked"        // stock and records are right, but the lock has admitted a second holder, or a buyer has released another holder's lock
	Stalled         Verdict = "stalled"         // buyers waited and none was served, far longer than a purchase takes
	Nonlinearizable Verdict = "nonlinearizable" // stock and records are right, but no order of the buys explains the answers
	Failed          Verdict = "failed"          // buyers got errors or impossible receipts, without a fault and with every server healthy
	LeakedLock      Verdict = "leaked_lock"     // the idle connection of an answered buyer still has a lock or an open transaction
	Holds           Verdict = "holds"           // none of the above, with demand above the stock and overlapping buys
	Inconclusive    Verdict = "inconclusive"    // no violation, but the run could not have shown one
)

// Keeps reports whether got keeps the promise. Oversold also keeps the promise Drifted, and Drifted keeps the
// promise Oversold, since both show lost updates. Inconclusive keeps no promise.
func (promise Verdict) Keeps(got Verdict) bool {
	if promise == Oversold || promise == Drifted {
		return got == Oversold || got == Drifted
	}
	return got == promise
}

// NeverChance reports whether a verdict is a violation even without a promise. A strategy without a promise
// may sell any number of units to any buyer. It may not give wrong answers, sell twice under one key, or let
// nodes differ.
func (got Verdict) NeverChance() bool {
	return got == Lost || got == Duplicated || got == Diverged || got == Nonlinearizable
}

// IsBreak reports whether a violation was seen, promised or not. "", which means that nothing was judged, is none.
func (got Verdict) IsBreak() bool { return got != "" && got != Holds && got != Inconclusive }

// Misses reports whether a violation is promised and `got` does not show it: `got` is Holds or Nonlinearizable.
func (promise Verdict) Misses(got Verdict) bool {
	return promise != "" && promise != Holds && (got == Holds || got == Nonlinearizable)
}
