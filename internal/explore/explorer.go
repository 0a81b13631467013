package explore

import (
	"context"
	"fmt"
	"strings"

	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
)

// Types of other packages that callers need.
type (
	// An Event is an incident, such as a crash, that the explorer injects as a step. Each event happens at most once
	// in a schedule.
	Event = schedule.Event
	// A Front is a part of the shop that runs before the strategy, such as a queue.
	Front = own.Front
	// A Schedule is the content of a replay string.
	Schedule = schedule.Schedule
	// Saved is a program's schedule in a file.
	Saved = schedule.Saved
	// Units lists how many units each buyer asks for. If there are more buyers than entries, the list repeats.
	Units = schedule.Units
	// A Witness is a schedule with its steps and its result. A search returns one that ends in a violation.
	Witness = witness.Witness
	// A Step is one step of a witness.
	Step = witness.Step
	// An Outcome is the answer to one buyer.
	Outcome = witness.Outcome
	// A Finding is a rule under `never` in oversell.yaml that was broken: its query returned rows.
	Finding = witness.Finding
)

// Events that callers ask for by name.
const (
	Expire  = schedule.Expire
	Crash   = schedule.Crash
	Forget  = schedule.Forget
	Renew   = schedule.Renew
	Timeout = schedule.Timeout

	Disconnect = schedule.Disconnect
	Raise      = schedule.Raise
	NoUnlock   = schedule.NoUnlock
	Restock    = schedule.Restock
)

// ErrRaised is the error that a buyer's code returns when the event Raise happens.
var ErrRaised = own.ErrRaised

// ErrHarness reports that the exploration itself failed, so its result proves nothing.
var ErrHarness = schedule.ErrHarness

// An Explorer searches the schedules of one strategy or program. Only one goroutine may use it.
type Explorer struct {
	config Config
	mode   mode
	runner schedule.Runner
	close  func() error
}

// New opens the buyers' connections. Call Close afterwards.
func New(ctx context.Context, c Config) (*Explorer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	runner, err := own.New(ctx, c.spec())
	if err != nil {
		return nil, err
	}
	return newExplorer(c, runner, runner.Close), nil
}

func newExplorer(c Config, r schedule.Runner, close func() error) *Explorer {
	return &Explorer{c, c.mode(), r, close}
}

// NewOn returns an explorer of the program under test c.Program. It ignores the fields Engine and Strategy. The runner
// r executes the schedules: each of its runs must begin in the same state, with as many buyers as c says.
// Explorer.Close calls the function `close`, which may be nil.
func NewOn(c Config, r schedule.Runner, close func() error) (*Explorer, error) {
	if !schedule.ProgramName(c.Program) {
		return nil, fmt.Errorf("invalid program name %q; use up to 64 characters of a-z, A-Z, 0-9, and after the first . _ -", c.Program)
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if close == nil {
		close = func() error { return nil }
	}
	return newExplorer(c, r, close), nil
}

// Close closes the buyers' Redis clients; the database pools close with the engine. For a program, it calls the
// function passed to NewOn.
func (x *Explorer) Close() error { return x.close() }

// ParseSchedule reads a replay string. The error is one line.
func ParseSchedule(line string) (Schedule, error) { return schedule.Parse(line) }

// EventNames returns a list of the events for messages.
func EventNames() string {
	var names []string
	for _, e := range Events(false) {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}
