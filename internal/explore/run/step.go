package run

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// do makes one step, and returns when everything stands still again.
func (r *Run) do(ctx context.Context, a Action) (err error) {
	switch {
	case a.event != nil:
		if err = a.event.Strike(ctx, r, a); err == nil {
			r.struck[a.Event]++
		}
	case a.Pair:
		err = r.releasePair(ctx, a)
	default:
		err = r.release(a.op, gate.Proceed)
	}
	if err != nil {
		return err
	}
	return r.rest.await(ctx)
}

// release lets one op go.
func (r *Run) release(o *gate.Op, how gate.Decision) error {
	b, err := r.buyers.find(o.Buyer)
	if err != nil {
		return err
	}
	if !o.Background {
		if b.resting {
			b.resting = false
			clear(b.asks)
		}
		if _, asked := b.asks[o.Server]; !asked && o.Effect != schedule.Local {
			b.asks[o.Server] = b.changes[o.Server]
		}
	}
	r.x.servers.touch(o.Server)
	if suffix(o.Server) != "" {
		r.touched[o.Server] = true
	}
	r.rest.unblocks = r.rest.unblocks || o.Server == gate.SQL && o.Effect == schedule.Writes
	b.steps++
	b.gate = without(b.gate, o)
	b.flying = append(b.flying, o)
	o.Blocked, o.SeenEnds = false, b.ends
	o.Decide(how)
	return nil
}

// releasePair lets the two commands of a concurrent pair go, in this order. That
// the first is on its way is said by its goroutine.
//
// Which of them the server takes first, whether one waits, and which one it
// sacrifices in a deadlock, is its own choice, see cameTo.
func (r *Run) releasePair(ctx context.Context, a Action) error {
	a.op.Beside, a.with.Beside = a.with, a.op
	if err := r.release(a.op, gate.ProceedAloud); err != nil {
		return err
	}
	select {
	case <-r.inbox.sent:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return r.release(a.with, gate.Proceed)
}

// cameTo is what a concurrent pair came to, as far as it is the same in every run
// that takes this course; "" of any other step.
func (r *Run) cameTo(a Action) string {
	if !a.Pair {
		return ""
	}
	return fmt.Sprintf("%d: %s, %d: %s", a.op.Buyer, r.buyers.cameTo(a.op), a.with.Buyer, r.buyers.cameTo(a.with))
}

// cameTo is what became of one command.
func (all buyers) cameTo(o *gate.Op) string {
	switch {
	case o.Blocked || all.flies(o):
		return "waits"
	case o.Server == gate.SQL:
		return o.Result
	case o.Changed:
		return "changed"
	}
	return "unchanged"
}
