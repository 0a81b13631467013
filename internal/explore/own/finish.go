package own

import (
	"context"
	"errors"
	"time"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/purchase"
)

// errCut is the cause with which the buyers' contexts end if the search ends a run early.
var errCut = errors.New("explore: the rest of this schedule is not needed")

// finish ends the run at any point and waits for its goroutines. If `deadEnd` is true, no buyer can move, and finish
// ends their waits as a time-out does.
func (r *run) finish(ctx context.Context, deadEnd bool) error {
	r.inbox.free.Store(true)
	for _, b := range r.buyers {
		switch {
		case deadEnd:
			b.cancel(purchase.ErrBusy)
		case !b.over:
			b.cancel(errCut)
		}
		r.cut = r.cut || deadEnd || !b.over || b.crashed || b.gone
	}
	for _, b := range r.buyers {
		for _, o := range b.gate {
			r.inbox.letGo(o)
		}
		b.gate = nil
		if len(b.flying) > 0 && r.x.database.Blocks() {
			if err := r.x.kill(ctx, b.id); err != nil {
				return err
			}
		}
	}
	heard := r.x.gates.PubSub.Used()
	if err := awaitReturn(r); err != nil {
		return err
	}
	r.leftover.look()
	for _, b := range r.buyers {
		if b.unlock != nil {
			b.unlock()
		}
	}
	for i, b := range r.buyers {
		if i == 0 || !r.x.spec.Shared {
			closeStrategy(b.strategy)
		}
	}
	if err := r.x.endings.await(r.x.rest); err != nil {
		return err
	}
	if heard {
		if err := r.x.servers.unheard(ctx); err != nil {
			return err
		}
	}
	r.x.attach(nil)
	return nil
}

func awaitReturn(r *run) error {
	ended := make(chan struct{})
	go func() { r.outcome.Wait(); close(ended) }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for p := r.x.endings.patience(maxEnding); ; {
		select {
		case <-ended:
			return nil
		case e := <-r.inbox.reports: // the run ended while the buyer was on the way to its gate
			if e.kind == arrived || e.kind == refused {
				r.inbox.letGo(e.op)
			}
		case <-look.C:
			if p.isOver() {
				return stuckError{schedule.ErrNoReturn, r.x.rest.Unended()}
			}
		}
	}
}

func (in *inbox) letGo(o *gate.Op) {
	if in.Dead(o.Buyer) {
		o.Decide(gate.Die)
	} else {
		o.Decide(gate.Proceed)
	}
}
