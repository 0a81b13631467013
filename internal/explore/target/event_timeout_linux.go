package target

import (
	"context"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// timeoutEvent: a buyer who waits in a server has waited for long enough. The server ends the
// statement as its own time-out would, see serverstate.Connections; Redis answers nil.
type timeoutEvent struct{}

func (timeoutEvent) name() schedule.Event { return schedule.Timeout }

func (e timeoutEvent) choices(_ context.Context, r *run) (all []action, _ error) {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[int]bool{}
	for _, o := range f.flying {
		if seen[o.buyer] || o.Limit == wire.Endless {
			continue // one at a time
		}
		seen[o.buyer] = true
		all = append(all, action{
			op:     o,
			Choice: schedule.Choice{Token: numbered(e.name(), o.buyer), Name: "timeout", Touches: o.Conn().Protocol, Buyer: o.buyer},
			note:   "its wait in the server times out",
		})
	}
	return all, nil
}

func (timeoutEvent) strike(ctx context.Context, r *run, a action) error { return r.endWait(ctx, a.op) }

// endWait ends a wait in a server as its time-out would.
func (r *run) endWait(ctx context.Context, o *op) error {
	o.timedOut, o.waits = true, false
	r.current = o.buyer
	return r.x.backends[o.Conn().Protocol].interrupt(ctx, o.Conn().ID)
}
