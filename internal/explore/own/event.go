package own

import (
	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A move is what can happen next to the buyers.
type move = conduct.Move[*gate.Op]

// events are what may happen to the buyers of a run beside their commands. Each is one file.
type events struct{ *run }

// all are those in display order.
func (e events) all() []conduct.Event[*gate.Op] {
	return []conduct.Event[*gate.Op]{
		{Name: schedule.Expire, Moves: e.expire},
		{Name: schedule.Crash, Moves: e.crash},
		{Name: schedule.Forget, Moves: e.forget},
		{Name: schedule.Renew, Moves: e.renew},
		{Name: schedule.Timeout, Moves: e.timeout},
		{Name: schedule.Disconnect, Moves: e.disconnect},
	}
}
