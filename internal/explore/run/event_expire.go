package run

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// expireEvent: every lease runs out, unnoticed by its holder: a pause, a slow
// section.
type expireEvent struct{}

func (expireEvent) Traits() Traits { return Traits{Name: "expire", Tokens: "expire"} }

func (expireEvent) Choices(ctx context.Context, r *Run) ([]Action, error) {
	leases, err := r.x.servers.leases(ctx, r.x.clock.Now())
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	return []Action{{
		Choice: schedule.Choice{Token: "expire", Name: "expire", Touches: oneServer(leases), Global: movesClock(leases)},
		text:   "every lease runs out, and its holder does not notice",
	}}, nil
}

// movesClock: whoever looks at the clock, after whatever step, sees that.
func movesClock(leases []serverstate.Lease) bool {
	return slices.ContainsFunc(leases, func(l serverstate.Lease) bool { return l.ByClock })
}

func oneServer(leases []serverstate.Lease) string {
	for _, l := range leases {
		if l.Server != leases[0].Server {
			return ""
		}
	}
	return leases[0].Server.Name
}

func (expireEvent) Strike(ctx context.Context, r *Run, _ Action) error {
	_, err := r.passing.expire(ctx, false)
	return err
}
