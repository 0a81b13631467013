package target

import (
	"context"
	"errors"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
)

// crash returns the moves that kill a buyer's program. The next run starts a new instance.
func (e events) crash(context.Context) (all []move, _ error) {
	now := e.programs.Gates.Table.Now()
	for _, b := range e.buyers.All {
		if b.Begun && (e.buyers.IsWaiting(b) || slices.ContainsFunc(slices.Concat(now.Held, now.Flying), func(o *gates.Op) bool { return o.Buyer == b.ID && !o.Late })) {
			all = append(all, move{
				Choice: schedule.Choice{Token: numbered(schedule.Crash, b.ID), Name: "crash", Buyer: b.ID, Global: true},
				Text:   "its process is killed, its connections end",
				Make:   func(ctx context.Context) error { return e.kill(ctx, b) },
			})
		}
	}
	return all, nil
}

// kill ends the program and cuts its connections on both sides. It drops the program's commands and answers, and
// returns when the servers have rolled back its transactions.
func (e events) kill(ctx context.Context, b *client.Buyer) (err error) {
	conns := e.programs.Gates.Connections.Of(b.ID)
	e.buyers.Crash(b)
	e.programs.Instances.Of(b.ID).Kill() // kill first, since the program could still react to its broken connections
	for _, c := range conns {
		c.Cut()
	}
	e.buyers.HangUp(b)
	for _, c := range conns {
		err = errors.Join(err, e.programs.Backends.Of(c).End(ctx, c.ID))
	}
	return err
}
