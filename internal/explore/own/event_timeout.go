package own

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// timeout ends a buyer's wait for another buyer's transaction, in the database or (on SQLite) at the gate.
func (e events) timeout(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		if o := b.waits(); o != nil {
			all = append(all, move{
				Choice:  schedule.Choice{Token: fmt.Sprintf("timeout%d", b.id), Buyer: b.id, Name: "timeout", Touches: gate.SQL},
				Command: o, Text: "its wait for the other's transaction times out",
				Make: func(ctx context.Context) error {
					o.EndWait()
					if !e.buyers.flies(o) {
						return e.release(o, gate.TimeOut)
					}
					e.rest.unblocks = true
					return e.x.database.Interrupt(ctx, o.Conn())
				},
			})
		}
	}
	return all, nil
}
