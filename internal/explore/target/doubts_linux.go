package target

import (
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/app"
)

// doubts are the rules that ask about answers and were broken before every buyer had come. They
// alone know which of these rules are mistakes in the file: those that are broken, too, when all
// buyers have come, one after the other.
type doubts struct {
	atReset *app.Finding // a rule broken right after reset; nil: none
	alone   []Alone      // each may have a rule broken with this buyer alone
}

// any reports whether there are such rules.
func (d doubts) any() bool {
	return d.atReset != nil || slices.ContainsFunc(d.alone, func(a Alone) bool { return a.doubted != nil })
}

// decide says in each Alone which rule is a mistake. found are the rules that are broken after the
// last buyer. The error is a rule that the state after reset breaks.
func (d doubts) decide(found []app.Finding) error {
	again := func(f *app.Finding) bool {
		return f != nil && slices.ContainsFunc(found, func(other app.Finding) bool { return other.Query == f.Query })
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

// errAtReset is a rule that the state after reset breaks.
func errAtReset(f *app.Finding) error {
	return fmt.Errorf("never: %s returns a row right after reset, before any buyer came: mend the query, or have reset make a state that it allows", f.Query)
}

// first is the first rule that asks about answers, or that does not; nil if there is none.
func first(found []app.Finding, answers bool) *app.Finding {
	if at := slices.IndexFunc(found, func(f app.Finding) bool { return f.Answers == answers }); at >= 0 {
		return &found[at]
	}
	return nil
}

// breaks has the buyer be the one after which a rule is broken.
func (a *Alone) breaks(f *app.Finding) {
	a.Why = a.Request + " is answered " + a.Answer + ", and then " + f.Query + " returns a row: mend the rule of `never`, or what `sold` says"
}
