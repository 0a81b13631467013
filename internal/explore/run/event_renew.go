package run

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// renewEvent: a buyer's watchdog is due. What it sends stands at the gate, beside
// the buyer's own command.
type renewEvent struct{}

func (renewEvent) Traits() Traits { return Traits{Name: "renew", Tokens: "renew[1-9]"} }

func (renewEvent) Choices(_ context.Context, r *Run) (all []Action, _ error) {
	for _, b := range r.buyers {
		if len(r.dogs.due(b)) > 0 {
			all = append(all, Action{
				// A timer fires in the buyer's process alone.
				Choice: schedule.Choice{Token: fmt.Sprintf("renew%d", b.id), Buyer: b.id, Name: "renew", Effect: schedule.Local},
				text:   "its watchdog is due",
			})
		}
	}
	return all, nil
}

func (renewEvent) Strike(_ context.Context, r *Run, a Action) error {
	r.ring(r.dogs.due(r.buyers[a.Buyer-1]))
	return nil
}
