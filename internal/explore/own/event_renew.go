package own

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// renew lets a buyer's watchdog renew the lease. The watchdog's command waits at the gate, together with the
// buyer's own command.
func (e events) renew(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		if armed := e.dogs.armed(b); len(armed) > 0 {
			all = append(all, move{
				// The event is local, since a timer fires only in the buyer's process.
				Choice: schedule.Choice{Token: fmt.Sprintf("renew%d", b.id), Buyer: b.id, Name: "renew", Effect: schedule.Local},
				Text:   "its watchdog is due",
				Make:   func(context.Context) error { e.fire(armed); return nil },
			})
		}
	}
	return all, nil
}
