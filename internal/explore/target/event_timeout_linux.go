package target

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// timeout ends a buyer's wait in a server, as the server's own time-out does (in Redis, with the answer nil). It does
// not apply to waits that the server ends without a time-out (wire.Endless).
func (e events) timeout(context.Context) (all []move, _ error) {
	seen := map[int]bool{}
	for _, o := range e.programs.Gates.Table.Now().Flying {
		if seen[o.Buyer] || o.Limit == wire.Endless {
			continue // one wait of a buyer at a time
		}
		seen[o.Buyer] = true
		if slices.Contains(e.choices.runsOut, o) {
			continue
		}
		all = append(all, move{
			Choice:  schedule.Choice{Token: numbered(schedule.Timeout, o.Buyer), Name: "timeout", Touches: o.Conn().Protocol, Buyer: o.Buyer, Global: true},
			Command: o, Text: "its wait in the server times out",
			Make: func(ctx context.Context) error { return e.choices.endWait(ctx, o) },
		})
	}
	return all, nil
}
