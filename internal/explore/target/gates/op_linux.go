package gates

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/wire"
)

// An Op is a command of the run, from its arrival at the gate until its answer is delivered; or a message that a server
// has pushed. The gates set some fields, the scheduler the others.
type Op struct {
	*wire.Command
	Buyer       int    // its sender; 0: not known yet
	Name        string // the same in every run, see naming.Names
	Shown       string // for the user
	Behind      bool   // an earlier command of its connection is not answered yet
	Waits       bool   // its server has blocked it because of another connection
	Interrupted bool   // the schedule has ended its wait
	Noted       bool   // Timed is known
	Timed       bool   // no answer to its buyer caused it: a timer of the program has fired
	Late        bool   // held back until the step at which it came in an earlier run
	Letter      rune   // in its tokens, until it is answered; 0: its place among the buyer's commands decides
	SetsUp      bool   // it sets up a connection that was not used before, see isSetUp
	Result      string // the answer as shown to the user
	Known       bool   // Result is set
	Free        bool   // it is a step only if its buyer may have a transaction or lock on another connection
	Halves
	Usage rows.Usage
}

// Halves is the state of a command that is two steps: its server executes it, and later commits it.
type Halves struct {
	Executed   bool // the server has executed it, and it is not committed
	Committing bool // it was held, and is committing
	Met        bool // another command ran while this one was held before its commit, or vice versa
}

func (o *Op) Of() string {
	if o.Buyer == 0 {
		return fmt.Sprintf("%q", o.Text)
	}
	return fmt.Sprintf("buyer %d: %q", o.Buyer, o.Text)
}

// ForRows returns the commands for package rows.
func ForRows(all ...*Op) (commands []rows.Command) {
	for _, o := range all {
		commands = append(commands, rows.Command{Command: o.Command, Buyer: o.Buyer, Timed: o.Timed, Usage: &o.Usage})
	}
	return commands
}
