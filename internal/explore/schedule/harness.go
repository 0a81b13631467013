package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// ErrHarness reports that the exploration itself failed, so its result means nothing.
var ErrHarness = errors.New("the explorer lost control of the run")

// ErrDivergence reports a replay divergence: the schedule belongs to another strategy or database, or
// the server took another course.
var ErrDivergence = errors.New("the schedule does not fit")

// Errors that come with ErrHarness if the strategy's own code is the reason.
var (
	ErrUnrepeated  = errors.New("the same schedule did not run the same way again")
	ErrNoReturn    = errors.New("a buyer's context has ended, and its Buy does not return")
	ErrGoroutine   = errors.New("every Buy has returned, and a goroutine of the strategy does not end")
	ErrTwoAtOnce   = errors.New("a buyer sends two commands to one server at once")
	ErrUndescribed = errors.New("a script is not described")
)

// Moving is the error of buyers whose actions the explorer cannot determine. It comes with ErrHarness.
type Moving []Mover

// A Mover is a buyer that neither sends a command nor waits for one.
type Mover struct {
	Buyer int
	After string // its command that is under way; "": it is between two commands
}

// Error names the buyers.
func (m Moving) Error() string {
	text := "the explorer cannot tell what these buyers do: "
	for _, b := range m {
		if b.After != "" {
			text += fmt.Sprintf("buyer %d: %s; ", b.Buyer, b.After)
		} else {
			text += fmt.Sprintf("buyer %d, between two commands; ", b.Buyer)
		}
	}
	return text
}

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
