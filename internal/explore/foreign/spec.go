package foreign

import (
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Spec is what is explored.
type Spec struct {
	App     *app.App
	Servers *app.Servers // its own; the caller closes them
	Events  []schedule.Event
	// Tries is how often in a row the same commands may get the same answers while another
	// buyer could go on, 1 to MaxTries; 0: DefaultTries. See schedule.Point.Held.
	Tries int
}

// Tries of a Spec.
const (
	DefaultTries = 4
	MaxTries     = 100
)

// A Check is what was seen when each buyer came alone, one command at a time: how a newcomer
// finds what is wrong.
type Check struct {
	Servers string
	Buyers  []Alone
}

// Alone is what one buyer did.
type Alone struct {
	Buyer    int
	Request  string
	Answer   string
	Sold     bool
	Took     time.Duration
	Commands []Seen
	Passed   []string // commands that no gate holds
	Why      string   // what went wrong; "" if nothing did
}

// Seen is a command that stood at a gate.
type Seen struct{ Server, Text, Result string }

// Err is what keeps the program from being explored; nil if nothing does. One line.
func (c Check) Err() error {
	for _, a := range c.Buyers {
		switch {
		case a.Why != "":
			return fmt.Errorf("buyer %d alone: %s", a.Buyer, a.Why)
		case len(a.Commands) == 0:
			return fmt.Errorf("buyer %d alone: no command came to a gate: the program goes around them (a unix socket, another address or port), or this request needs no server; --app-check shows what was seen", a.Buyer)
		}
	}
	return nil
}
