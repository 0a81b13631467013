package own

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// expire makes every lease expire without its holder noticing it, as if the holder had paused or its critical section
// had been slow.
func (e events) expire(ctx context.Context) ([]move, error) {
	leases, err := e.x.servers.leases(ctx, e.x.clock.Now())
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	return []move{{
		Choice: schedule.Choice{Token: "expire", Name: "expire", Touches: oneServer(leases), Global: e.x.spec.Strategy.TimesVotes || movesClock(leases)},
		Text:   "all leases expire, and no holder notices",
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

// oneServer returns the server that stores all leases, or "" if several servers store some.
func oneServer(leases []serverstate.Lease) string {
	for _, l := range leases {
		if l.Server != leases[0].Server {
			return ""
		}
	}
	return leases[0].Server.Name
}
