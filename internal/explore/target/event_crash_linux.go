package target

import (
	"context"
	"errors"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// crash kills the buyer's program. The next run gets a new one.
func (e events) crash(context.Context) (all []move, _ error) {
	f := e.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range e.buyers {
		if b.begun && (b.alive || slices.ContainsFunc(slices.Concat(f.held, f.flying), func(o *op) bool { return b.sent(o) && !o.late })) {
			all = append(all, move{
				Choice: schedule.Choice{Token: numbered(schedule.Crash, b.id), Name: "crash", Buyer: b.id, Global: true},
				Text:   "its process is killed, its connections end",
				Make:   func(ctx context.Context) error { return e.kill(ctx, b) },
			})
		}
	}
	return all, nil
}

// kill cuts the program's connections on both sides and returns when their transactions are rolled
// back. The program's commands and answers are dropped.
func (e events) kill(ctx context.Context, b *buyer) (err error) {
	f := e.x.gateTable
	f.mu.Lock()
	conns := f.conns.of(b.id)
	b.crashed, b.alive, f.dead[b.id] = true, false, true
	f.mu.Unlock()
	e.x.instances.of(b.id).kill() // kill first: otherwise the program could still report that its connections broke
	for _, c := range conns {
		c.Cut()
	}
	_ = b.socket.Close()
	for _, c := range conns {
		err = errors.Join(err, e.x.backends[c.Protocol].end(ctx, c.ID))
	}
	return err
}
