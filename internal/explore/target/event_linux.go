package target

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/session"
)

// events has one method for each event that may happen in a run, in a file of its own.
type events struct {
	programs session.Programs
	buyers   *client.Buyers
	choices  *choices
}

func (e events) all() []conduct.Event[*gates.Op] {
	return []conduct.Event[*gates.Op]{
		{Name: schedule.Expire, Moves: e.expire},
		{Name: schedule.Crash, Moves: e.crash},
		{Name: schedule.Forget, Moves: e.forget},
		{Name: schedule.Timeout, Moves: e.timeout},
	}
}

func numbered(e schedule.Event, buyer int) string { return fmt.Sprintf("%s%d", e, buyer) }
