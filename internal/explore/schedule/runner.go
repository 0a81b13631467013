package schedule

import (
	"context"

	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Runner runs schedules of one configuration, each from the same initial state. Only one goroutine may use
// it.
//
// A Runner relies on repetition: the same choices must lead to the same next choices. If it loses control of a run,
// the error is ErrHarness, or Void if only this run is lost.
type Runner interface {
	// Run runs one schedule. If `observe` is true, Ended includes the steps and outcomes. The error is ErrDivergence if
	// `choose` names a choice that does not exist. An error of `choose` is wrapped. The next Run starts from the
	// initial state, however this run ended.
	Run(ctx context.Context, choose Chooser, observe bool) (Ended, error)
	// Stated reports whether the runner sets Point.State.
	Stated() bool
}

// An Anew is a Runner of programs that may keep data in memory between runs.
type Anew interface {
	// Anew makes the next Run restart the programs first.
	Anew()
}

// A Poller is a Runner of programs that may send commands by themselves.
type Poller interface {
	// Polls reports whether a program has sent a command while no buyer's request was under way.
	Polls() bool
}

// A Patient is a Runner of programs whose buyers may stop retrying.
type Patient interface {
	// Outlast runs one schedule in which a buyer makes the retries that the search has left out. It returns one line
	// about the buyer's next action, with advice; "" if the buyer changed no data afterwards, or waits
	// forever.
	Outlast(ctx context.Context) (gaveUp string, err error)
}

// A Chooser picks a choice by its token, or returns "" if the schedule need not continue. The point is valid only
// during the call. At the end of a schedule there is no choice: then any token except "", such as Judge, makes the
// runner judge the schedule.
type Chooser func(p *Point) (token string, err error)

// Judge is the token that a Chooser returns at the end of a schedule.
const Judge = "judge"

// A State identifies everything that can still happen. Two schedules that reach the same State have
// the same continuations and results.
type State [32]byte

// A Point describes a schedule between two steps, when every buyer is blocked, done, or has a command to be released.
type Point struct {
	Depth   int      // steps so far
	Choices []Choice // the buyers' commands sorted by buyer, then the events
	Seen    string   // result of the last step, if that was a concurrent pair

	Begun func(buyer int) bool // reports whether the buyer has sent a command
	// Fresh reports whether a server is a node of a multi-node lock that received no command yet. The text `standing`
	// lists the commands at the server's gates. Two fresh nodes with equal lists are interchangeable.
	Fresh func(server string) (standing string, fresh bool)
	// Paused is a buyer that has paused in the program since the last step, while another buyer could have moved; 0:
	// none. Paused and Standing are set only if all buyers use one instance of the program.
	Paused int
	// Standing lists each command with the earlier commands on its connection. It differs from another run if the
	// program's pools have handed out other connections.
	Standing string
	Told     bool // the last step delivered a message to a buyer
	// Mixed reports that steps of two other buyers may both lead to an answer for one buyer, which then sees their
	// order. That buyer has a command at its gate and another waiting in a server; or two waiting in servers; or it
	// listens to one server and waits in another. Then no two choices of this point count as commuting.
	Mixed bool
	// Races permits the search to reorder only commands that race: those that do not commute.
	Races bool
	// Held reports that a command is left out because its buyer has made the maximum number of futile retries
	// (explore.Config.Tries).
	Held bool
	// Late reports that a command is left out because a timer of the program sent it earlier than in another run.
	// The search leaves out schedules in which this command overtakes others.
	Late  bool
	Where func() string // describes the position of each buyer, for an error message
	// State returns the state of this point; nil if the runner does not support states.
	State func() (State, error)
	// View returns the point as shown to the user; nil without `observe`, or if the runner has no view.
	View func() (View, error)
}

// Ended describes the end of a schedule.
type Ended struct {
	Verdict  verdict.Verdict
	Why      string
	Tokens   []string
	Steps    []witness.Step    // with observe
	Outcomes []witness.Outcome // the buyers' answers
	Watch    []string          // with `observe`: the columns of Watched in Steps; nil without a watch query
	Findings []witness.Finding // rows that broken rules returned
	Folded   *witness.Folded   // with `observe`: the short form of the steps; nil: show all steps

	// Compound lists commands of several statements that ran as one step, although another buyer's command could have come
	// in between. Like Divided, it omits values that differ between runs.
	Compound []string
	// Divided lists commands that read and write in one step, although another buyer's write could have come in between.
	Divided []string
	// Holdable reports that --overlap would run a command of Divided as two steps.
	Holdable bool
	// Ignored lists commands that oversell.yaml ignores, although they affect a step or a rule, each with the
	// reason.
	Ignored []string
	// Uncompared lists the allowed differences from the serial runs, in which the buyers run one after the other.
	Uncompared []string

	// Stray is a lock released on a connection that does not hold it, or taken through a pooler that assigns
	// connections per transaction; "": none.
	Stray string
	// Namesakes is a host name and process id that two instances have both sent; "": none.
	Namesakes string

	// Unforeseen is one line with the reason why commands that counted as commuting may not commute; "": none.
	Unforeseen string

	Foreign    bool // a buyer has released another holder's lock
	Early      bool // a buyer was refused, and a later buyer could buy; with a program: if the buyers run one by one, the refused buyer can buy
	Concurrent bool // the schedule includes a concurrent pair
	Pruned     bool // ended early: the schedule could show nothing new
	Cut        bool // ended early: the schedule repeated itself
	Final      bool // code of the strategy still runs and would disturb later schedules
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
