package own

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

var errCrashed = errors.New("explore: this buyer has crashed")

// crash returns the moves in which a buyer stops forever and its connections end.
func (e events) crash(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		if b.unfinished() && !b.crashed && b.steps > 0 {
			m := ofBuyer(schedule.Crash, b, "crashes: its connections end, it is never heard of again", e.kill)
			switch {
			case e.x.gates.PubSub.Listens(b.id): // PUBLISH returns the number of listeners, so another buyer can notice the crash
				m.Global = true
			case b.open() || b.named: // the database rolls back its transaction and frees its named lock
				m.Effect, m.Touches = schedule.Writes, gate.SQL
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// kill stops all further commands of the buyer before they reach a server. It ends the connections on which the buyer's
// unanswered commands were sent.
func (e events) kill(ctx context.Context, b *buyer) error {
	r := e.run
	r.inbox.crash(b.id)
	b.crashed, b.answered = true, b.over
	r.rest.unblocks, r.knows.books.known = true, false
	b.cancel(errCrashed)
	for _, o := range b.gate {
		o.Decide(gate.Die)
	}
	b.gate = nil
	open := b.open() || b.named
	r.named.freed(r.buyers, b)
	if err := r.x.kill(ctx, b.id); err != nil || !open {
		return err
	}
	r.buyers.sawEnd()
	return nil
}
