package target

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// timeout ends a buyer's wait in a server as the server's own time-out would, see
// serverstate.Database.Interrupt. Redis answers nil. The event does not apply to a wait that ends by
// itself.
func (e events) timeout(context.Context) (all []move, _ error) {
	f := e.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[int]bool{}
	for _, o := range f.flying {
		if seen[o.buyer] || o.Limit == wire.Endless {
			continue // one at a time
		}
		seen[o.buyer] = true
		if slices.Contains(e.runsOut, o) {
			continue
		}
		all = append(all, move{
			Choice:  schedule.Choice{Token: numbered(schedule.Timeout, o.buyer), Name: "timeout", Touches: o.Conn().Protocol, Buyer: o.buyer, Global: true},
			Command: o, Text: "its wait in the server times out",
			Make: func(ctx context.Context) error { return e.endWait(ctx, o) },
		})
	}
	return all, nil
}
