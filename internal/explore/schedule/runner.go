package schedule

import (
	"context"

	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/verdict"
)

// A Runner runs schedules of one configuration, each from the same restored state.
// It is for one goroutine.
//
// What it rests on is that the same choices lead to the same choices again; where
// it loses control of a run the error is ErrHarness.
type Runner interface {
	// Run runs one schedule. With observe, Ended has its steps and outcomes.
	// ErrDivergence when choose names a choice that there is not.
	Run(ctx context.Context, choose Chooser, observe bool) (Ended, error)
}

// A Chooser picks one of the choices by its token, or returns "" where the
// schedule need not be gone on with. The point is valid during the call.
type Chooser func(p *Point) (token string, err error)

// A Point is where a schedule stands, when every buyer does.
type Point struct {
	Depth   int      // steps so far
	Choices []Choice // the buyers' commands in the order of the buyers, then the events
	Seen    string   // what the last step came to, when it was a concurrent pair

	Begun func(buyer int) bool // the buyer has sent a command
	State func() string        // where each buyer is, for an error
}

// Ended is how one schedule ended.
type Ended struct {
	Verdict  verdict.Verdict
	Why      string
	Tokens   []string
	Steps    []witness.Step    // with observe
	Outcomes []witness.Outcome // what the buyers were answered

	Foreign    bool // a buyer has freed another's lock
	Concurrent bool // a concurrent pair is in it
	Pruned     bool // nothing new could come of it
	Cut        bool // it went round in circles
}

// FirstMove is the token of the first command that can be let go; "" when none can.
func (p *Point) FirstMove() string {
	for i := range p.Choices {
		if p.Choices[i].Command() {
			return p.Choices[i].Token
		}
	}
	return ""
}
