package explore

import (
	"context"
	"fmt"
	"strings"

	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
)

// What callers see of the rooms below.
type (
	// An Event is something that happens to the buyers, as a step of the schedule.
	// Each happens at most once in a schedule.
	Event = schedule.Event
	// A Front is a part of the shop in front of the strategy, see own.Front.
	Front = own.Front
	// A Schedule is what a replay line says.
	Schedule = schedule.Schedule
	// Units are the numbers of units that the buyers ask for, in turn.
	Units = schedule.Units
	// A Witness is a schedule that ends badly, or with Replay any schedule.
	Witness = witness.Witness
	// A Step is one line of a witness.
	Step = witness.Step
	// An Outcome is what one buyer was answered.
	Outcome = witness.Outcome
	// A Finding is what a query has found that should find nothing.
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
)

// ErrHarness: the exploration itself went wrong, and its result means nothing.
var ErrHarness = schedule.ErrHarness

// An Explorer searches among the schedules of one strategy, or program. It is for one
// goroutine.
type Explorer struct {
	config Config
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
	return &Explorer{c, runner, runner.Close}, nil
}

// NewOn is an explorer over any runner, of a program that is not ours: Config.Program names
// it, and Engine and Strategy are not looked at. Each run of r begins at the same state, and
// has the buyers, the events and the rest of c. close ends r, with Close; nil: nothing does.
func NewOn(c Config, r schedule.Runner, close func() error) (*Explorer, error) {
	if !schedule.ProgramName(c.Program) {
		return nil, fmt.Errorf("%q is no name of a program; give up to 64 of a-z, A-Z, 0-9, and after the first . _ -", c.Program)
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if close == nil {
		close = func() error { return nil }
	}
	return &Explorer{c, r, close}, nil
}

// Close closes the buyers' Redis clients, whose pools close with the engine; of a program it
// is what NewOn was given.
func (x *Explorer) Close() error { return x.close() }

// ParseSchedule reads a replay line. The error is one line.
func ParseSchedule(line string) (Schedule, error) { return schedule.Parse(line) }

// EventNames lists the events for people.
func EventNames() string {
	var names []string
	for _, e := range Events(false) {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}
