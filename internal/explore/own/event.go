package own

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A move is a possible next step of a schedule: a command or an event.
type move = conduct.Move[*gate.Op]

// events has one method for each event that may happen in a run, in a file of its own.
type events struct{ *run }

func (e events) all() []conduct.Event[*gate.Op] {
	return []conduct.Event[*gate.Op]{
		{Name: schedule.Expire, Moves: e.expire},
		{Name: schedule.Crash, Moves: e.crash},
		{Name: schedule.Forget, Moves: e.forget},
		{Name: schedule.Renew, Moves: e.renew},
		{Name: schedule.Timeout, Moves: e.timeout},
		{Name: schedule.Disconnect, Moves: e.disconnect},
		{Name: schedule.Raise, Moves: e.raise},
		{Name: schedule.NoUnlock, Moves: e.noUnlock},
		{Name: schedule.Restock, Moves: e.restock},
	}
}

// ofBuyer returns the move of an event that happens to one buyer. The move calls the function `happen`. It touches no
// server, unless the caller sets one.
func ofBuyer(e schedule.Event, b *buyer, text string, happen func(ctx context.Context, b *buyer) error) move {
	return move{
		Choice: schedule.Choice{Token: fmt.Sprintf("%s%d", e, b.id), Buyer: b.id, Name: string(e), Effect: schedule.Local},
		Text:   text,
		Make:   func(ctx context.Context) error { return happen(ctx, b) },
	}
}
