// Package verdict names what a run can prove about a lock strategy. It is the
// vocabulary that the catalogue promises in and the instruments answer in;
// the judging itself is in internal/judge/audit.
package verdict

// A Verdict is what one run showed.
type Verdict string

// The verdicts, worst first but for the last two.
const (
	Lost            Verdict = "lost"            // a sale was acknowledged and has no record
	Diverged        Verdict = "diverged"        // the nodes of one cluster have different books, and keep them
	Duplicated      Verdict = "duplicated"      // one idempotency key has more than one record
	Oversold        Verdict = "oversold"        // more units sold than there ever were
	Drifted         Verdict = "drifted"         // units sold + leftover > stocked: updates were lost
	Leaked          Verdict = "leaked"          // units sold + leftover < stocked, or units sold to a buyer that was refused: units vanished
	Broken          Verdict = "broken"          // an invariant of the user's own does not hold, of a program that is not ours
	Unlocked        Verdict = "unlocked"        // stock and records are right, and the lock has let in a second one, or freed another's
	Stalled         Verdict = "stalled"         // buyers waited and nobody was served, far longer than a purchase takes
	Nonlinearizable Verdict = "nonlinearizable" // stock and records are right, but no order of the buys explains the answers
	Failed          Verdict = "failed"          // buyers got errors, or receipts that cannot be true, without a fault and with every server healthy
	LeakedLock      Verdict = "leaked_lock"     // the idle connection of an answered buyer still has a lock or an open transaction
	Raced           Verdict = "raced"           // the shop has a data race, seen by the race detector: nothing else that it did is sure
	Holds           Verdict = "holds"           // none of the above, under demand above stock and with overlap
	Inconclusive    Verdict = "inconclusive"    // nothing was broken, but the run could not have shown it
)

// Keeps reports whether got keeps the promise. A promised break is kept by
// Oversold as by Drifted: both are the same lost update, and the numbers of
// the run decide which of the two it shows as. Inconclusive keeps nothing.
func (promise Verdict) Keeps(got Verdict) bool {
	if promise == Oversold || promise == Drifted {
		return got == Oversold || got == Drifted
	}
	return got == promise
}

// NeverChance reports whether a verdict is a break wherever nothing is promised, too. A
// missing promise leaves open how many units are sold, or who gets them; not whether the
// buyers were told the truth, one order is one sale, and the servers agree.
func (got Verdict) NeverChance() bool {
	return got == Lost || got == Duplicated || got == Diverged || got == Nonlinearizable
}

// Crowds is how many crowds must miss a promised break before it counts as mended:
// whether buyers meet in one is chance, the more so on a machine that has no time.
const Crowds = 3

// Misses reports whether the promise is a break of stock and records that got does not show.
func (promise Verdict) Misses(got Verdict) bool {
	return promise != "" && promise != Holds && (got == Holds || got == Nonlinearizable)
}
