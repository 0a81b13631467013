package target

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// crashEvent: the buyer's program dies. Its connections are cut on both sides, what they had
// open is rolled back, and nothing of it is delivered any more. The next run has a new one.
type crashEvent struct{}

func (crashEvent) name() schedule.Event { return schedule.Crash }

func (e crashEvent) choices(_ context.Context, r *run) (all []action, _ error) {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range r.buyers {
		unfinished := b.alive
		for _, list := range [][]*op{f.held, f.flying} {
			for _, o := range list {
				unfinished = unfinished || o.buyer == b.id
			}
		}
		if b.begun && unfinished {
			all = append(all, action{
				Choice: schedule.Choice{Token: numbered(e.name(), b.id), Name: "crash", Buyer: b.id},
				note:   "its process is killed, its connections end",
			})
		}
	}
	return all, nil
}

func (crashEvent) strike(ctx context.Context, r *run, a action) (err error) {
	b, i := r.buyer(a.Buyer), r.x.programOf(a.Buyer)
	f := r.x.floor
	conns := f.of(a.Buyer)
	f.mu.Lock()
	b.crashed, b.alive, f.dead[b.id] = true, false, true
	f.mu.Unlock()
	i.kill() // first: else it could still say that its connections have broken
	for _, c := range conns {
		c.Cut()
	}
	_ = b.socket.Close()
	for _, c := range conns {
		err = errors.Join(err, r.x.backends[c.Protocol].end(ctx, c.ID))
	}
	return err
}
