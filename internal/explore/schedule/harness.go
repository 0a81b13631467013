package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// ErrHarness reports that the exploration itself failed, so its result proves nothing.
var ErrHarness = errors.New("the explorer lost control of the run")

// ErrDivergence reports a replay divergence: the schedule belongs to another strategy or database, or
// the server reacted differently.
var ErrDivergence = errors.New("the schedule does not fit")

// Errors that accompany ErrHarness if the strategy's own code is the reason.
var (
	ErrUnrepeated  = errors.New("the same schedule did not run the same way again")
	ErrNoReturn    = errors.New("a buyer's context has ended, and its Buy does not return")
	ErrGoroutine   = errors.New("every Buy has returned, and a goroutine of the strategy does not end")
	ErrTwoAtOnce   = errors.New("a buyer sends two commands to one server at once")
	ErrUndescribed = errors.New("a script is not described")
)

// Moving is the error for buyers whose activity the explorer cannot determine. It accompanies ErrHarness.
type Moving []Mover

// A Mover is a buyer that neither sends a command nor waits for an answer.
type Mover struct {
	Buyer int
	After string // the buyer's command that is under way; "": the buyer is between two commands
}

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

// Void is the error of a run that proves nothing, since the runner lost control of it. A repetition may
// succeed. It occurs only with programs under test.
type Void struct {
	// Why is one line that is the same for every occurrence of a cause. Void runs are counted by cause.
	Why string
	// Details describe this run, without values that differ between runs; "": none.
	Details string
	// Missed reports that the schedule wanted a move during another buyer's pause, and the pause was over or did
	// not come. Seen reports that it came.
	Missed, Seen bool
	// Diverged reports that the program sent other commands than in an earlier run. The program still works.
	Diverged bool
}

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

// program matches the name of a program in a replay string, on a command line and in a file name.
var program = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ProgramName reports whether a program may have the given name: 1 to 64 ASCII letters, digits, dots,
// underscores and hyphens, beginning with a letter or a digit.
func ProgramName(name string) bool { return program.MatchString(name) }

// HangTimeout limits waits that should end by themselves. It never chooses a step: if it expires, the run ends with
// ErrHarness.
const HangTimeout = 30 * time.Second

// Forever is longer than any run. Only an event ends a lease or a wait of this length.
const Forever = time.Hour

// MaxSteps limits a schedule of a strategy: a longer schedule only repeats itself. MaxLine is the maximum number of
// steps in a replay string; programs need more steps than strategies.
const MaxSteps, MaxLine = 400, 10_000
