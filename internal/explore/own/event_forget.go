package own

import (
	"context"

	"github.com/oversell/oversell/internal/explore/schedule"
)

func (e events) forget(ctx context.Context) (all []move, _ error) {
	for _, s := range e.x.servers {
		held, err := s.Held(ctx)
		if err != nil {
			return nil, err
		}
		if len(held) > 0 {
			all = append(all, move{
				Choice: schedule.Choice{Token: "forget" + suffix(s.Name), Name: "forget " + s.Name, Touches: s.Name},
				Text:   s.Name + " forgets its keys",
				Make: func(ctx context.Context) error {
					if err := s.Clear(ctx); err != nil {
						return err
					}
					e.buyers.changed(s.Name)
					return nil
				},
			})
		}
	}
	return all, nil
}
