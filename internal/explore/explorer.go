package explore

import (
	"context"
	"fmt"
	"strings"

	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
)

// The parts of the packages below that callers use.
type (
	// An Event is something that happens to the buyers, as a step of the schedule.
	// Each happens at most once in a schedule.
	Event = schedule.Event
	// A Front is a part of the shop in front of the strategy, see own.Front.
	Front = own.Front
	// A Schedule is the content of a replay string.
	Schedule = schedule.Schedule
	// Saved is a program's schedule in a file.
	Saved = schedule.Saved
	// Units are the numbers of units that the buyers ask for, in turn.
	Units = schedule.Units
	// A Witness is a schedule that breaks or, from Replay, any schedule.
	Witness = witness.Witness
	// A Step is one line of a witness.
	Step = witness.Step
	// An Outcome is the answer to one buyer.
	Outcome = witness.Outcome
	// A Finding is a rule of `never` that returned rows.
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

// ErrRaised is the error that a buyer's code meets in the event Raise.
var ErrRaised = own.ErrRaised

// ErrHarness reports that the exploration itself failed, so its result means nothing.
var ErrHarness = schedule.ErrHarness

// An Explorer searches the schedules of one strategy or program. It serves one goroutine.
type Explorer struct {
	config Config
	mode   mode
	runner schedule.Runner
	close  func() error
}

// New opens the buyers' connections. Close must follow.
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

// NewOn returns an explorer of a program under test, over any runner. Config.Program names the program;
// Engine and Strategy are ignored. Each run of r begins at the same state and uses the buyers, the
// events and the rest of c. Close calls close, which may be nil.
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

// Close closes the buyers' Redis clients, whose pools close with the engine. For a program it calls the
// function that NewOn was given.
func (x *Explorer) Close() error { return x.close() }

// ParseSchedule reads a replay string. The error is one line.
func ParseSchedule(line string) (Schedule, error) { return schedule.Parse(line) }

// EventNames lists the events for people.
func EventNames() string {
	var names []string
	for _, e := range Events(false) {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}
