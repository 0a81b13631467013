package gates

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/wire"
)

// An Op is a command, from its arrival at the gate until its answer is delivered, or a message that a server has
// pushed. The gates set some fields, and the scheduler sets the others.
type Op struct {
	*wire.Command
	Buyer       int    // the buyer that sent it; 0: not known yet
	Name        string // name that is the same in every run, see naming.Names
	Shown       string // for the user
	Behind      bool   // an earlier command of the same connection has no answer yet
	Waits       bool   // it waits in its server for another connection
	Interrupted bool   // the explorer has ended its wait in the server
	Noted       bool   // Timed has been decided
	Timed       bool   // a timer of the program sent it: its buyer had received no answer before
	Late        bool   // held back until the step at which it came in an earlier run
	Letter      rune   // letter in its tokens; 0: its position among the buyer's commands determines the letter
	SetsUp      bool   // it sets up a new connection, see isSetUp
	Result      string // the answer as shown to the user
	Known       bool   // Result is set
	Free        bool   // a ping, which is a step only if its buyer may have a transaction or lock on another connection
	Halves
	Usage rows.Usage
}

// Halves is the state of a command that runs as two steps: first its server executes it, later it commits it.
type Halves struct {
	Executed   bool // the server has executed it, and has not committed it
	Committing bool // the commit has begun
	Met        bool // another command ran while this one was held before its commit, or this one while another was
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
