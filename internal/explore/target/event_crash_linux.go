package target

import (
	"context"
	"errors"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// crash has the buyer's program die. The next run has a new one.
func (e events) crash(context.Context) (all []move, _ error) {
	f := e.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range e.buyers {
		if b.begun && (b.alive || slices.ContainsFunc(slices.Concat(f.held, f.flying), b.sent)) {
			all = append(all, move{
				Choice: schedule.Choice{Token: numbered(schedule.Crash, b.id), Name: "crash", Buyer: b.id, Global: true},
				Text:   "its process is killed, its connections end",
				Make:   func(ctx context.Context) error { return e.kill(ctx, b) },
			})
		}
	}
	return all, nil
}

// kill cuts the program's connections on both sides and returns when what they had open is rolled
// back. Nothing of it is delivered any more.
func (e events) kill(ctx context.Context, b *buyer) (err error) {
	f := e.x.floor
	f.mu.Lock()
	conns := f.conns.of(b.id)
	b.crashed, b.alive, f.dead[b.id] = true, false, true
	f.mu.Unlock()
	e.x.fleet.of(b.id).kill() // first: else it could still say that its connections have broken
	for _, c := range conns {
		c.Cut()
	}
	_ = b.socket.Close()
	for _, c := range conns {
		err = errors.Join(err, e.x.backends[c.Protocol].end(ctx, c.ID))
	}
	return err
}
