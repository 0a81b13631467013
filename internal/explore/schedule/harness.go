package schedule

import (
	"errors"
	"regexp"
	"time"
)

// ErrHarness: the exploration itself went wrong, and its result means nothing.
var ErrHarness = errors.New("the explorer lost control of the run")

// ErrDivergence is a replay divergence: the schedule is not one of this strategy
// or database, or the server took another course.
var ErrDivergence = errors.New("the schedule does not fit")

// Void is the error of a run that shows nothing: the runner lost control of it, and it may
// well go right when it is tried again. It is of programs that are not ours.
type Void struct {
	// Why is one line that says the same whenever the same has happened, without the run's
	// own values: void runs are counted by it.
	Why string
	// Details are what was seen in this run, as far as it may be seen again; may be "".
	Details string
	// Missed reports that a move in another buyer's pause was not made: the pause was over or did not
	// come. Seen reports that the pause came.
	Missed, Seen bool
}

// Error says both.
func (v Void) Error() string {
	if v.Details == "" {
		return v.Why
	}
	return v.Why + ": " + v.Details
}

// AsVoid finds the Void in an error.
func AsVoid(err error) (v Void, is bool) {
	is = errors.As(err, &v)
	return v, is
}

// program is the name of one in a replay line, on a command line and in a file's name.
var program = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ProgramName reports whether a program can have that name: 1 to 64 letters of ASCII, digits,
// dots, underscores and hyphens, of which a letter or a digit is the first.
func ProgramName(name string) bool { return program.MatchString(name) }

// HangTimeout bounds the wait for what must come. It decides no step: when it is
// over the run is a harness error.
const HangTimeout = 30 * time.Second

// Forever is longer than any run: what runs out by the clock does so by an event
// of the schedule.
const Forever = time.Hour

// MaxSteps ends a schedule that goes round in circles.
const MaxSteps = 400
