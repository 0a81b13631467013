package run

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// An Event is something that happens to the buyers, as a step of the schedule, at
// most once in each.
type Event interface {
	Traits() Traits
	// Choices are the ways in which it can happen now. Their Event is filled in.
	Choices(ctx context.Context, r *Run) ([]Action, error)
	// Strike has one of them happen.
	Strike(ctx context.Context, r *Run, a Action) error
}

// Traits are what must be known of an event before it happens.
type Traits struct {
	Name schedule.Event
	// Tokens is a regular expression, without groups, of what it is called in a
	// replay line.
	Tokens string
	// NotShared says why it cannot be where all buyers are one process; "" where it
	// can.
	NotShared string
}

// AllEvents are all in display order.
func AllEvents() []Event {
	return []Event{expireEvent{}, crashEvent{}, forgetEvent{}, renewEvent{}, timeoutEvent{}}
}

// Events are those named, in display order.
func Events(names []schedule.Event) []Event {
	return slices.DeleteFunc(AllEvents(), func(e Event) bool { return !slices.Contains(names, e.Traits().Name) })
}

// Grammar reads the replay lines of all events.
func Grammar() schedule.Grammar {
	var tokens []string
	for _, e := range AllEvents() {
		tokens = append(tokens, e.Traits().Tokens)
	}
	return schedule.NewGrammar(tokens...)
}
