package schedule

import (
	"context"

	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Runner runs schedules of one configuration, each from the same restored state. It serves one
// goroutine.
//
// A Runner relies on repetition: the same choices lead to the same choices again. If it loses control
// of a run, the error is ErrHarness, or Void if only this run is lost.
type Runner interface {
	// Run runs one schedule. With observe, Ended has its steps and outcomes. The error is ErrDivergence
	// if choose names a choice that does not exist. An error of choose is wrapped. However a run ended,
	// the next Run starts anew.
	Run(ctx context.Context, choose Chooser, observe bool) (Ended, error)
	// Stated reports whether its points have a State.
	Stated() bool
}

// An Anew is a Runner of programs that may keep something in their memory from run to run.
type Anew interface {
	// Anew makes the next Run begin with programs that were started for it.
	Anew()
}

// A Poller is a Runner of programs that may send commands by themselves.
type Poller interface {
	// Polls reports whether a program has sent a command while no buyer was there.
	Polls() bool
}

// A Patient is a Runner of programs whose buyers may stop to wait.
type Patient interface {
	// Outlast runs one schedule in which a buyer uses up the retries that the search has left out. It returns
	// in one line what the buyer did next and what to do; "" if the buyer changed nothing afterwards, or waits
	// without end.
	Outlast(ctx context.Context) (gaveUp string, err error)
}

// A Chooser picks one of the choices by its token, or returns "" if the schedule need not continue. The
// point is valid during the call. At the end of a schedule there is no choice; then Judge makes the
// runner judge the schedule, as does every other token except "".
type Chooser func(p *Point) (token string, err error)

// Judge is the answer of a Chooser at the end of a schedule.
const Judge = "judge"

// A State identifies all that can still happen. Two schedules that reach the same State have
// the same continuations, with the same ends.
type State [32]byte

// A Point is the situation of a schedule when no buyer moves.
type Point struct {
	Depth   int      // steps so far
	Choices []Choice // the buyers' commands sorted by buyer, then the events
	Seen    string   // result of the last step, if it was a concurrent pair

	Begun func(buyer int) bool // the buyer has sent a command
	// Fresh reports whether server is a node of a lock to which no buyer has sent a command, and which
	// commands wait at its gates. Two such nodes with the same waiting commands differ only in name.
	Fresh func(server string) (standing string, fresh bool)
	// Paused is a buyer that has paused in the program since the last step, while another buyer could
	// have moved; 0: none. Only programs whose buyers share a process set it.
	Paused int
	// Standing lists each command with the earlier use of its connection. It differs if the program's
	// pools have lent other connections. Only runners that set Paused set it.
	Standing string
	Told     bool // the last step delivered a message to a buyer
	// Mixed reports that a buyer may be answered by two steps of others, so that the order of these
	// steps shows. The buyer has a command at its gate and another one waiting in a server; or two
	// wait in servers; or it listens to a server, and waits in another. Then no two choices of this
	// point count as commuting, see explore.Config.Reduce.
	Mixed bool
	// Races reports that the search may follow only a schedule's races, see explore.Config.Reduce.
	Races bool
	// Held reports that a command is missing that would be one more futile retry, see
	// explore.Config.Tries.
	Held bool
	// Late reports that a command is missing because it came earlier than in another run: a timer of the
	// program sends it. Schedules in which it overtakes others are left out.
	Late  bool
	Where func() string // describes the position of each buyer, for an error
	// State returns the state of this point; nil if the runner has none.
	State func() (State, error)
	// View returns what people are shown of the point; nil without observe, or if the runner has none.
	View func() (View, error)
}

// Ended describes the end of a schedule.
type Ended struct {
	Verdict  verdict.Verdict
	Why      string
	Tokens   []string
	Steps    []witness.Step    // with observe
	Outcomes []witness.Outcome // the buyers' answers
	Watch    []string          // with observe: the columns of Watched in Steps; nil if there is no watch query
	Findings []witness.Finding // rows of broken rules
	Folded   *witness.Folded   // with observe: the steps as people see them; nil: as they are

	// Compound lists commands of several statements that ran as one step, although another buyer's
	// command could have come in between. They are without the run's own values.
	Compound []string
	// Divided lists commands that read and write in one step, although another buyer's write could have
	// come in between. They are without the run's own values.
	Divided []string
	// Holdable reports that --overlap could hold one of Divided.
	Holdable bool
	// Ignored lists commands that ran without being steps, since the file of the program ignores them,
	// although they have something to do with a step or a rule: each with the reason.
	Ignored []string
	// Uncompared lists what was left out of the comparison with the orders of the buyers, see package oracle.
	Uncompared []string

	// Stray is a release of a lock on another connection than the one on which its buyer took it, or a lock for which a
	// pooler makes that possible; "": none was seen.
	Stray string
	// Namesakes is the host name and process id that buyers of two instances have sent; "": none were the same.
	Namesakes string

	// Unforeseen says in one line why commands that counted as commuting may not commute; "": they do.
	Unforeseen string

	Foreign    bool // a buyer has released another holder's lock
	Early      bool // a buyer was refused, and a later one could buy; of a program: the orders of the buyers serve it
	Concurrent bool // a concurrent pair is in it
	Pruned     bool // it could show nothing new
	Cut        bool // it repeated itself
	Final      bool // code of the strategy still runs and would disturb further schedules
}

// AtEnd reports whether the schedule has ended.
func (p *Point) AtEnd() bool { return len(p.Choices) == 0 }

// FirstMove returns the token of the first command that can be released, or Judge at the end.
func (p *Point) FirstMove() string {
	for i := range p.Choices {
		if p.Choices[i].Command() {
			return p.Choices[i].Token
		}
	}
	return Judge
}
