package own

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// expire has every lease expire, unnoticed by its holder: a pause, a slow section.
func (e events) expire(ctx context.Context) ([]move, error) {
	leases, err := e.x.servers.leases(ctx, e.x.clock.Now())
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	return []move{{
		Choice: schedule.Choice{Token: "expire", Name: "expire", Touches: oneServer(leases), Global: movesClock(leases)},
		Text:   "every lease runs out, and its holder does not notice",
		Make: func(ctx context.Context) error {
			_, err := e.passing.expire(ctx, false)
			return err
		},
	}}, nil
}

// movesClock reports whether the event moves the buyers' clock, which every later step can see.
func movesClock(leases []serverstate.Lease) bool {
	return slices.ContainsFunc(leases, func(l serverstate.Lease) bool { return l.ByClock })
}

// oneServer is the server that has all leases; "" if several have.
func oneServer(leases []serverstate.Lease) string {
	for _, l := range leases {
		if l.Server != leases[0].Server {
			return ""
		}
	}
	return leases[0].Server.Name
}
