package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// Crowds is how many bursts must miss a promised violation before it counts as fixed: whether
// buyers overlap is chance, especially on a busy machine.
const Crowds = 3

// mostPlays is how often Confirm plays, except that a result which only its timing contradicts is
// always played once more.
const mostPlays = Crowds + 1

// A Play is the result of a crowd or of a cell that was played once.
type Play[T any] interface {
	*T
	// Judged returns the promise, "" if there is none, and the verdict.
	Judged() (promise, got Verdict)
	// Disturbed says why the play shows nothing although another may. It returns "" if the play counts.
	Disturbed() string
	// IsTimed reports whether only the timing of events shows the violation.
	IsTimed() bool
	// Doubt makes the play inconclusive. It puts reason before the play's own reason.
	Doubt(reason string)
	// Played adds to the evidence that there were several plays, how many, and why.
	Played(times int, because string)
}

// Confirm repeats a play until its result is not chance. This is the only rule for repeating a crowd or a
// cell: something disturbed the play, a burst missed a promised violation, or only timing contradicts the
// promise. The evidence says how often it was played, and why. An error comes from play.
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

// confirmed combines a play that contradicts its promise only by its timing with a second one. If the
// second shows something else, the result is inconclusive and keeps the details of the first, since the
// machine may have stood still. A violation that needs no second play counts at once.
func confirmed[T any, P Play[T]](first, second P) P {
	_, before := first.Judged()
	_, got := second.Judged()
	if got.IsBreak() && (!second.IsTimed() || got == before) {
		return second
	}
	first.Doubt(fmt.Sprintf("%s once, and %s when it was run again: ", before, got))
	return first
}
