package target

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// An event is something that happens to the buyers, as a step, at most once in a schedule.
type event interface {
	name() schedule.Event
	// choices are the ways in which it can happen now: Token, Name, Touches, Buyer and note.
	choices(ctx context.Context, r *run) ([]action, error)
	strike(ctx context.Context, r *run, a action) error
}

// allEvents are all, in the order of schedule.Kinds. A further one is a file and a line here.
func allEvents() []event {
	return []event{expireEvent{}, crashEvent{}, forgetEvent{}, timeoutEvent{}}
}

// eventsNamed are those asked for.
func eventsNamed(names []schedule.Event) []event {
	return slices.DeleteFunc(allEvents(), func(e event) bool { return !slices.Contains(names, e.name()) })
}
