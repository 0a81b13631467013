package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// crashEvent: a buyer is never heard of again, its connections end.
type crashEvent struct{}

// errCrashed is why a crashed buyer's context ends.
var errCrashed = errors.New("explore: this buyer has crashed")

func (crashEvent) Traits() Traits {
	return Traits{Name: "crash", Tokens: "crash[1-9]", NotShared: "the one process would take all buyers with it"}
}

func (crashEvent) Choices(_ context.Context, r *Run) (all []Action, _ error) {
	for _, b := range r.buyers {
		if b.unfinished() && !b.crashed && b.steps > 0 {
			c := schedule.Choice{Token: fmt.Sprintf("crash%d", b.id), Buyer: b.id, Name: "crash", Effect: schedule.Local}
			switch {
			case r.x.gates.PubSub.Listens(b.id): // whoever notifies it is told how many listen
				c.Global = true
			case r.open(b) || b.named: // it is rolled back, and its named lock is free
				c.Effect, c.Touches = schedule.Writes, gate.SQL
			}
			all = append(all, Action{Choice: c, text: "crashes: its connections end, it is never heard of again"})
		}
	}
	return all, nil
}

// Strike has no command of the buyer reach a server any more; those that it had open
// see its connections end.
func (crashEvent) Strike(ctx context.Context, r *Run, a Action) error {
	b := r.buyers[a.Buyer-1]
	r.inbox.crash(b.id)
	b.crashed, b.answered = true, b.over
	r.rest.unblocks, r.books.known = true, false
	b.cancel(errCrashed)
	for _, o := range b.gate {
		o.Decide(gate.Die)
	}
	b.gate = nil
	open := r.open(b) || b.named
	r.named.freed(r.buyers, b)
	if err := r.x.kill(ctx, b.id); err != nil || !open {
		return err
	}
	for _, other := range r.buyers {
		other.changes[gate.SQL]++
		other.ends++
	}
	return nil
}

// open: the buyer has a transaction open, or a statement on its way.
func (r *Run) open(b *buyer) bool {
	return slices.ContainsFunc(r.x.seatOf(b.id).connector.Open(b.id), (*gate.Conn).InTransaction) ||
		slices.ContainsFunc(b.flying, func(o *gate.Op) bool { return o.Server == gate.SQL })
}
