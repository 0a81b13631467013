package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// Crowds is how many bursts of buyers must miss a promised violation before it counts as fixed. One is too
// few: buyers overlap by chance, especially on a busy machine.
const Crowds = 3

// mostPlays is the maximum number of plays. Confirm adds one more if the last of them contradicts the promise
// only by its timing.
const mostPlays = Crowds + 1

// A Play is the result of one run of a test, such as a burst of buyers.
type Play[T any] interface {
	*T
	// Judged returns the promise, "" if there is none, and the verdict.
	Judged() (promise, got Verdict)
	// Disturbed says why this play proves nothing although a repetition may prove something. It returns "" if
	// the play counts.
	Disturbed() string
	// IsTimed reports whether only the timing of events shows the violation, so that a busy machine may be the
	// cause.
	IsTimed() bool
	// Doubt makes the play inconclusive. It puts `reason` before the play's own reason.
	Doubt(reason string)
	// Played adds to the evidence how often the test was run, and why it was repeated.
	Played(times int, because string)
}

// Confirm repeats a play until chance no longer explains its result. No other code decides on repetitions.
// Confirm repeats if something disturbed the play, if a burst missed a promised violation, or if only timing
// contradicts the promise. It returns an error only if `play` returns one.
func Confirm[T any, P Play[T]](play func() (T, error)) (T, error) {
	var timed P // a play that contradicts the promise only by its timing
	var why []string
	for {
		result, err := play()
		if err != nil {
			return result, err
		}
		p, plays := P(&result), len(why)+1
		promise, got := p.Judged()
		again, last := p.Disturbed(), plays >= mostPlays
		switch {
		case timed != nil && (again == "" || last):
			p, again = confirmed(timed, p), ""
		case again != "":
		case promise.Misses(got) && plays < Crowds:
			again = fmt.Sprintf("%s was promised and not seen", promise)
		case p.IsTimed() && promise != got:
			timed, last = p, false
			again = fmt.Sprintf("only the time said that it was %s", got)
		}
		if again == "" || last {
			if plays > 1 {
				p.Played(plays, strings.Join(slices.Compact(why), ", and "))
			}
			return *p, nil
		}
		why = append(why, again)
	}
}

// confirmed combines two plays. The first contradicts its promise only by its timing. If the second shows the same
// verdict, or a violation that does not depend on timing, the second is the result. Otherwise the machine may have
// been delayed in the first play. Then the result is the first play with its details, but inconclusive.
func confirmed[T any, P Play[T]](first, second P) P {
	_, before := first.Judged()
	_, got := second.Judged()
	if got.IsBreak() && (!second.IsTimed() || got == before) {
		return second
	}
	first.Doubt(fmt.Sprintf("%s once, and %s when it was run again: ", before, got))
	return first
}
