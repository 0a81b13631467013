package own

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// disconnect returns the moves in which a buyer hangs up: its context ends, and its process cleans up.
func (e events) disconnect(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		if b.over || b.crashed || b.steps == 0 {
			continue
		}
		m := ofBuyer(schedule.Disconnect, b, "hangs up: its context ends", e.hangUp)
		m.Global = b.inside || e.x.spec.Shared // the end of the context may wake another buyer in the same process
		if len(b.flying) > 0 {
			m.Effect, m.Touches = schedule.Writes, gate.SQL
		}
		all = append(all, m)
	}
	return all, nil
}

// hangUp ends the buyer's context. If the buyer's statement waits in the server, the driver then closes the connection,
// and the server rolls back.
func (e events) hangUp(ctx context.Context, b *buyer) error {
	r := e.run
	b.gone, b.resting = true, false
	clear(b.asks)
	r.knows.memories[b.id-1].hear(fmt.Sprintf("buyer %d has hung up", b.id))
	r.rest.severalAtOnce = true // database/sql rolls back in a goroutine of its own
	for _, other := range r.buyers {
		other.inside = false
	}
	waiting := b.flying
	b.cancel(context.Canceled)
	for _, o := range waiting {
		if o.Conn() == nil {
			continue
		}
		r.rest.unblocks, r.knows.books.known = true, false
		o.Conn().Abandon()
		if err := r.x.database.End(ctx, o.Conn()); err != nil {
			return fmt.Errorf("disconnect: %w", err)
		}
		r.buyers.sawEnd()
	}
	return nil
}
