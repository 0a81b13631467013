package run

import (
	"context"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// forgetEvent: one Redis loses its keys.
type forgetEvent struct{}

func (forgetEvent) Traits() Traits { return Traits{Name: "forget", Tokens: "forget(?:-[a-z])?"} }

func (forgetEvent) Choices(ctx context.Context, r *Run) (all []Action, _ error) {
	for _, s := range r.x.servers {
		held, err := s.Held(ctx)
		if err != nil {
			return nil, err
		}
		if len(held) > 0 {
			all = append(all, Action{
				Choice: schedule.Choice{Token: "forget" + suffix(s.Name), Name: "forget " + s.Name, Touches: s.Name},
				server: s, text: s.Name + " forgets its keys",
			})
		}
	}
	return all, nil
}

func (forgetEvent) Strike(ctx context.Context, r *Run, a Action) error {
	if err := a.server.Clear(ctx); err != nil {
		return err
	}
	r.buyers.changed(a.server.Name)
	return nil
}
