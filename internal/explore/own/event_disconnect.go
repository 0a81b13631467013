package own

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// disconnect has a buyer hang up: its context ends. Its process lives and cleans up.
func (e events) disconnect(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		if b.over || b.crashed || b.steps == 0 {
			continue
		}
		c := schedule.Choice{Token: fmt.Sprintf("disconnect%d", b.id), Buyer: b.id, Name: "disconnect", Effect: schedule.Local}
		c.Global = b.inside || e.x.spec.Shared // it may wake another buyer of its process
		if len(b.flying) > 0 {
			c.Effect, c.Touches = schedule.Writes, gate.SQL
		}
		all = append(all, move{
			Choice: c, Text: "hangs up: its context ends",
			Make: func(ctx context.Context) error { return e.hangUp(ctx, b) },
		})
	}
	return all, nil
}

// hangUp ends the buyer's context. A driver whose statement waits in the server closes the
// connection then, and the server rolls back.
func (e events) hangUp(ctx context.Context, b *buyer) error {
	r := e.run
	b.gone, b.resting = true, false
	clear(b.asks)
	r.knows.memories[b.id-1].hear(fmt.Sprintf("buyer %d has hung up", b.id))
	r.rest.severalAtOnce = true // database/sql rolls back beside the buyer
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
		for _, other := range r.buyers {
			other.changes[gate.SQL]++
			other.ends++
		}
	}
	return nil
}
