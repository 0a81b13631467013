package target

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A move is one thing that can happen next to the buyers.
type move = conduct.Move[*op]

// events builds the events that may happen in a run. Each event is one file.
type events struct{ *run }

// all lists the events in display order.
func (e events) all() []conduct.Event[*op] {
	return []conduct.Event[*op]{
		{Name: schedule.Expire, Moves: e.expire},
		{Name: schedule.Crash, Moves: e.crash},
		{Name: schedule.Forget, Moves: e.forget},
		{Name: schedule.Timeout, Moves: e.timeout},
	}
}

// numbered returns the token of an event that concerns one buyer.
func numbered(e schedule.Event, buyer int) string { return fmt.Sprintf("%s%d", e, buyer) }
