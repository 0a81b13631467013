package explore

import (
	"context"
	"strings"

	"github.com/oversell/oversell/internal/explore/run"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
)

// What callers see of the rooms below.
type (
	// An Event is something that happens to the buyers, as a step of the schedule.
	// Each happens at most once in a schedule.
	Event = schedule.Event
	// A Schedule is what a replay line says.
	Schedule = schedule.Schedule
	// A Witness is a schedule that ends badly, or with Replay any schedule.
	Witness = witness.Witness
	// A Step is one line of a witness.
	Step = witness.Step
	// An Outcome is what one buyer was answered.
	Outcome = witness.Outcome
)

// Events that callers ask for by name.
const (
	Expire  Event = "expire"  // every lease runs out, unnoticed by its holder: a pause, a slow section
	Crash   Event = "crash"   // a buyer is never heard of again, its connections end
	Forget  Event = "forget"  // one Redis loses its keys
	Renew   Event = "renew"   // a buyer's watchdog is due
	Timeout Event = "timeout" // a buyer has waited in the database for long enough
)

// ErrHarness: the exploration itself went wrong, and its result means nothing.
var ErrHarness = schedule.ErrHarness

// An Explorer searches among the schedules of one strategy. It is for one
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
	runner, err := run.New(ctx, c.spec())
	if err != nil {
		return nil, err
	}
	return &Explorer{c, runner, runner.Close}, nil
}

// Close closes the buyers' Redis clients; their pools close with the engine.
func (x *Explorer) Close() error { return x.close() }

// ParseSchedule reads a replay line. The error is one line.
func ParseSchedule(line string) (Schedule, error) { return run.Grammar().Parse(line) }

// EventNames lists the events for people.
func EventNames() string {
	var names []string
	for _, e := range Events(false) {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}
