package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// Crowds is how many bursts must miss a promised violation before it counts as fixed. One is too few: buyers
// overlap by chance, especially on a busy machine.
const Crowds = 3

// mostPlays is the maximum number of plays. Only if timing alone contradicts the promise in the last of them,
// Confirm adds one more.
const mostPlays = Crowds + 1

// A Play is the result of a crowd or of a cell that was played once.
type Play[T any] interface {
	*T
	// Judged returns the promise, "" if there is none, and the verdict.
	Judged() (promise, got Verdict)
	// Disturbed says why this play proves nothing although another play may. It returns "" if the play
	// counts.
	Disturbed() string
	// IsTimed reports whether only the timing of events shows the violation.
	IsTimed() bool
	// Doubt makes the play inconclusive. It puts reason before the play's own reason.
	Doubt(reason string)
	// Played adds the number of plays, if there were several, and their reason to the evidence.
	Played(times int, because string)
}

// Confirm repeats a play until its result is not chance. No other code decides on a repetition. It repeats
// if something disturbed the play, if a burst missed a promised violation, or if only timing contradicts the
// promise. It returns an error only if play returns one.
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

// confirmed combines two plays, the first of which contradicts its promise only by its timing. If the second
// play shows something else, the result is inconclusive and keeps the details of the first play, since the
// machine may have stood still. If the second shows the same verdict, or a violation that does not depend on
// timing, the result is the second play.
func confirmed[T any, P Play[T]](first, second P) P {
	_, before := first.Judged()
	_, got := second.Judged()
	if got.IsBreak() && (!second.IsTimed() || got == before) {
		return second
	}
	first.Doubt(fmt.Sprintf("%s once, and %s when it was run again: ", before, got))
	return first
}
