package schedule

import (
	"context"

	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Runner runs schedules of one configuration, each from the same restored state.
// It is for one goroutine.
//
// What it rests on is that the same choices lead to the same choices again; where
// it loses control of a run the error is ErrHarness, or Void when only this run is lost.
type Runner interface {
	// Run runs one schedule. With observe, Ended has its steps and outcomes.
	// ErrDivergence when choose names a choice that there is not. An error of choose is
	// wrapped. The next Run is a new one, however this one has ended.
	Run(ctx context.Context, choose Chooser, observe bool) (Ended, error)
	// Stated reports whether its points have a State.
	Stated() bool
}

// A Chooser picks one of the choices by its token, or returns "" where the
// schedule need not be gone on with. The point is valid during the call. At the end of
// a schedule, where there is no choice, any other token has it judged: Judge.
type Chooser func(p *Point) (token string, err error)

// Judge is what a Chooser answers at the end of a schedule.
const Judge = "judge"

// A State identifies all that can still happen. Two schedules that reach the same State have
// the same continuations, with the same ends.
type State [32]byte

// A Point is where a schedule stands, when all buyers are at rest.
type Point struct {
	Depth   int      // steps so far
	Choices []Choice // the buyers' commands in the order of the buyers, then the events
	Seen    string   // what the last step came to, when it was a concurrent pair

	Begun func(buyer int) bool // the buyer has sent a command
	// Fresh reports whether server is one of a lock's nodes to which no buyer has sent a command,
	// and what waits at its gates. Only their names distinguish two nodes at whose gates the same
	// commands wait.
	Fresh func(server string) (standing string, fresh bool)
	// Paused is a buyer that has paused in the program since the last step, while another buyer could
	// have moved; 0: none. Only programs whose buyers share a process set it.
	Paused int
	// Standing lists each command with the earlier use of its connection. It differs where the
	// program's pools have lent other connections. Only runners that set Paused set it.
	Standing string
	Told     bool // the last step delivered a message to a buyer
	// Mixed: a buyer may be answered by two steps of which neither is the other's, so that
	// their order shows: one has a command at its gate, and another of its own waits in a
	// server or it listens to one; or it waits or listens at two servers. Then no two choices
	// of this point are taken to commute, see explore.Config.Reduce.
	Mixed bool
	// Held: a command is missing that would be one more futile retry, see explore.Config.Tries.
	Held  bool
	Where func() string // where each buyer is, for an error
	// State is the state here; nil where it cannot be had.
	State func() (State, error)
	// View is what people are shown of it; nil without observe, and where a runner has none.
	View func() (View, error)
}

// Ended is how one schedule ended.
type Ended struct {
	Verdict  verdict.Verdict
	Why      string
	Tokens   []string
	Steps    []witness.Step    // with observe
	Outcomes []witness.Outcome // what the buyers were answered
	Watch    []string          // with observe: the columns of Steps' Watched; nil: there is no such query
	Findings []witness.Finding // rows that should not be there

	// Compound are the commands that were several statements, between which another's could have
	// come: one step here. Without the run's own values.
	Compound []string
	// Divided are the commands that read and write as one step although another buyer's write could
	// have come between. They are without the run's own values.
	Divided []string

	Foreign    bool // a buyer has released another holder's lock
	Early      bool // a buyer was answered sold out, and a later one could buy
	Concurrent bool // a concurrent pair is in it
	Pruned     bool // nothing new could come of it
	Cut        bool // it went round in circles
	Final      bool // code of the strategy still runs and would disturb further schedules
}

// AtEnd reports whether the schedule has ended.
func (p *Point) AtEnd() bool { return len(p.Choices) == 0 }

// FirstMove is the token of the first command that can be let go; Judge at the end.
func (p *Point) FirstMove() string {
	for i := range p.Choices {
		if p.Choices[i].Command() {
			return p.Choices[i].Token
		}
	}
	return Judge
}
