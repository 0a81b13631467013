package target

import (
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/witness"
)

// suspectRules holds rules with the counts :sold or :failed that were broken before all buyers had come. Such a rule is
// a mistake in oversell.yaml only if it is also broken after all buyers have come, one after the other.
type suspectRules struct {
	atReset *witness.Finding // a rule that was broken right after reset; nil: none
	alone   []Alone          // some have a rule that is broken after this buyer alone
}

// any reports whether there is a suspect rule.
func (d suspectRules) any() bool {
	return d.atReset != nil || slices.ContainsFunc(d.alone, func(a Alone) bool { return a.doubted != nil })
}

// decide marks each Alone with a mistaken rule. The list `found` has the rules that are broken after the last buyer.
// The error names a mistaken rule that was broken right after reset.
func (d suspectRules) decide(found []witness.Finding) error {
	again := func(f *witness.Finding) bool {
		return f != nil && slices.ContainsFunc(found, func(other witness.Finding) bool { return other.Query == f.Query })
	}
	if again(d.atReset) {
		return errAtReset(d.atReset)
	}
	for n := range d.alone {
		if a := &d.alone[n]; a.Why == "" && again(a.doubted) {
			a.breaks(a.doubted)
		}
	}
	return nil
}

func errAtReset(f *witness.Finding) error {
	return fmt.Errorf("never: %s returns a row right after reset, before any buyer came: correct the query, or let reset make a state in which it returns none", f.Query)
}

// first returns the first finding with the given value of Finding.Answers; nil if there is none.
func first(found []witness.Finding, answers bool) *witness.Finding {
	if at := slices.IndexFunc(found, func(f witness.Finding) bool { return f.Answers == answers }); at >= 0 {
		return &found[at]
	}
	return nil
}

// breaks records that the rule f is broken after the buyer's answer. A buyer with several commands at once may race
// with itself, which the search reports. Otherwise the rule is a mistake in oversell.yaml.
func (a *Alone) breaks(f *witness.Finding) {
	if a.AtOnce > 1 {
		a.Races = f.Query
		return
	}
	a.Why = a.Request + " is answered " + a.Answer + ", and then " + f.Query + " returns a row: correct the rule in `never`, or the answers in `sold`"
}
