package target

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// A clearing prepares the programs for the next run.
type clearing struct{ settling }

// early returns an error if a command waits at a gate when a run begins. The command belongs to the
// previous run. Since that run has its verdict already, early makes this run void instead.
func (r clearing) early(ctx context.Context) error {
	f := r.x.gateTable
	f.mu.Lock()
	var late []string
	for _, o := range slices.Concat(f.fresh, f.held, f.flying, f.uncommitted, f.answered) {
		late = append(late, o.of())
		if !o.Push {
			r.x.ownTraffic.seen.saw(o.Conn().Protocol, o.Text, o.buyer, time.Now())
		}
	}
	f.mu.Unlock()
	if len(late) == 0 {
		f.close()
		return nil
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	return voided("the program sends by itself when no buyer is there", "%s%s", strings.Join(late, ", "), r.x.ownTraffic.advice(r.x.ownTraffic.pollers()))
}

// finish ends the run. It opens the gates, so the programs can finish their work. It ends a program that
// is stuck, was killed, or has left a lock behind; rehearsal.recover restarts it before the next run, if
// there is one. If ctx ends, finish does not wait for the programs any more.
func (r clearing) finish(ctx context.Context, stuck bool) error {
	x := r.x
	attached := x.app.Attach != nil
	if !stuck || attached { // an attached program cannot be restarted
		r.current = 0
		waits := ctx
		if attached {
			waits = context.WithoutCancel(ctx)
		}
		stuck = r.drain(waits) != nil
	}
	ctx = context.WithoutCancel(ctx)
	if stuck {
		for _, b := range r.buyers {
			if b.socket != nil {
				_ = b.socket.Close()
			}
		}
	}
	dirty, err := r.leftover.dirty(ctx)
	if err != nil {
		return err
	}
	stuck = stuck || x.recovery.renewal == due && len(dirty) > 0
	if attached && len(dirty) > 0 && !stuck {
		return x.rehearsal.reconnect(ctx, dirty)
	}
	for _, i := range x.instances.all {
		if !i.up() || stuck || x.rehearsal.cold || slices.ContainsFunc(dirty, i.serves) {
			if err := x.instances.end(ctx, i); err != nil {
				return err
			}
			x.down = append(x.down, i)
		}
	}
	x.gateTable.close()
	return nil
}

// recover restarts the programs that the previous run has ended, or renews the connections that it has
// cut. If it restarts a program, all that were to end have ended by now, so none has a connection open.
func (x *rehearsal) recover(ctx context.Context) error {
	if len(x.down) == 0 && x.recovery.renewal != due {
		return nil
	}
	if len(x.down) == 0 {
		x.recovery.renewal = done
		err := x.renew(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		x.down = x.instances.all
	}
	for _, i := range x.down { // again, if an earlier recovery has not ended
		if err := x.instances.end(ctx, i); err != nil {
			return err
		}
	}
	if err := x.restart(ctx, x.down...); err != nil {
		return err
	}
	x.down, x.recovery.renewal = nil, unneeded
	x.gateTable.close()
	return nil
}

// drain opens the gates, waits for the buyers' answers and until the programs are idle, and shuts the
// gates.
func (r clearing) drain(ctx context.Context) error {
	f := r.x.gateTable
	if r.done() {
		return nil
	}
	for _, o := range f.open() {
		if err := r.x.backends[o.Conn().Protocol].interrupt(ctx, o.Conn().ID); err != nil {
			return err
		}
	}
	if err := r.served(ctx); err != nil {
		return err
	}
	idle := briefTimers{run: r.run}
	for deadline := time.Now().Add(r.x.patience); !idle.restful(); f.bell.wait(look) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.New("the program does not become idle")
		}
	}
	f.close()
	return nil
}

// done reports whether the run has just ended in a standstill with nothing at the gates, so there is
// nothing to wait for.
func (r clearing) done() bool {
	f := r.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range r.buyers {
		if b.alive && !b.crashed {
			return false
		}
	}
	return f.shut && f.still && len(f.fresh)+len(f.held)+len(f.flying)+len(f.uncommitted)+len(f.answered) == 0
}

var errJam = errors.New("the buyers block each other inside the program")

// served waits, with the gates open, until all buyers that have come are answered. The error is errJam
// if a buyer has no answer and nothing moves any more. That includes a command that waits in a server
// for the lock of an idle connection.
func (r clearing) served(ctx context.Context) error {
	f := r.x.gateTable
	moved, seq := time.Now(), f.moves()
	for deadline := moved.Add(r.x.patience); ; f.bell.wait(time.Millisecond) {
		if now := f.moves(); now != seq {
			moved, seq = time.Now(), now
		}
		if time.Since(moved) > blindWait && r.asleep() {
			if dirty, err := r.x.holdings.dirty(ctx); err != nil || len(dirty) > 0 {
				return errors.Join(errJam, err)
			}
			moved = time.Now()
		}
		switch {
		case len(r.deadEnd()) == 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return errors.New("a buyer is not answered")
		case r.restful() && !r.sleeping() && len(r.deadEnd()) > 0:
			return errJam
		}
	}
}
