package schedule

import (
	"errors"
	"regexp"
	"time"
)

// ErrHarness reports that the exploration itself failed, so its result means nothing.
var ErrHarness = errors.New("the explorer lost control of the run")

// ErrDivergence reports a replay divergence: the schedule belongs to another strategy or database, or
// the server took another course.
var ErrDivergence = errors.New("the schedule does not fit")

// Void is the error of a run that shows nothing, since the runner lost control of it. A repetition may
// succeed. It occurs only with programs under test.
type Void struct {
	// Why is one line that is the same for the same cause, without values of this run. Void runs are
	// counted by it.
	Why string
	// Details describe this run, without values that differ between runs; may be "".
	Details string
	// Missed reports that a move in another buyer's pause was not made: the pause was over or did not
	// come. Seen reports that the pause came.
	Missed, Seen bool
	// Diverged reports that the program sent other commands than in an earlier run. It still serves.
	Diverged bool
}

// Error returns both.
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

// program matches the name of a program in a replay string, on a command line and in the name of a
// file.
var program = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ProgramName reports whether a program can have that name: 1 to 64 ASCII letters, digits, dots,
// underscores and hyphens, beginning with a letter or a digit.
func ProgramName(name string) bool { return program.MatchString(name) }

// HangTimeout bounds waits that should end by themselves. It decides no step: if it expires, the run is
// a harness error.
const HangTimeout = 30 * time.Second

// Forever is longer than any run. Only an event ends a lease or a wait of this length.
const Forever = time.Hour

// MaxSteps ends a schedule of a strategy, since a longer one repeats itself. MaxLine is the maximum
// number of steps in a replay string, which a program may need.
const MaxSteps, MaxLine = 400, 10_000
