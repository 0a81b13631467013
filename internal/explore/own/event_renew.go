package own

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// renew lets a buyer's watchdog (the goroutine that renews its lease) send its command. The command then waits at the
// gate, together with the buyer's own.
func (e events) renew(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		if armed := e.dogs.armed(b); len(armed) > 0 {
			all = append(all, move{
				// the timer fires in the buyer's process and reaches no server, so the effect is local
				Choice: schedule.Choice{Token: fmt.Sprintf("renew%d", b.id), Buyer: b.id, Name: "renew", Effect: schedule.Local},
				Text:   "its watchdog is due",
				Make:   func(context.Context) error { e.fire(armed); return nil },
			})
		}
	}
	return all, nil
}
