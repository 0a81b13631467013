package target

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// rehearseShared lets the buyers of the one instance through, with the gates open, one after
// the other and then all at once. Where those block each other inside the program it is
// started anew, and they come one after the other only: the search will find it, too.
func (x *Runner) rehearseShared(ctx context.Context, i *instance) error {
	if i.line == "" {
		if err := x.settled(ctx); err != nil {
			return err
		}
	}
	if err := x.oneByOne(ctx, i); err != nil {
		return err
	}
	if x.jams || i.line == "" {
		return nil // nobody here could start anew what runs already
	}
	if err := x.idle(ctx, i); err != nil { // what is a nap is known from now on
		return err
	}
	if err := x.servers.Reset(ctx); err != nil {
		return err
	}
	x.floor.open()
	r := x.newRun(false)
	for _, b := range r.buyers {
		if err := r.send(ctx, b); err != nil {
			return err
		}
	}
	err := r.served(ctx)
	if err == nil || !errors.Is(err, errJam) {
		return err
	}
	x.jams = true
	for _, b := range r.buyers {
		_ = b.socket.Close()
	}
	if err := x.end(ctx, i); err != nil {
		return err
	}
	if err := x.start(i); err != nil {
		return err
	}
	if err := x.ready(ctx, i); err != nil {
		return err
	}
	return x.oneByOne(ctx, i)
}

func (x *Runner) oneByOne(ctx context.Context, i *instance) error {
	x.floor.open()
	for n := range x.app.Buyers {
		if err := x.servers.Reset(ctx); err != nil {
			return err
		}
		r := x.newRun(false)
		b := r.buyers[n]
		if err := r.send(ctx, b); err != nil {
			return err
		}
		select {
		case <-b.answered:
		case <-time.After(x.patience):
			return x.orRefused(fmt.Errorf("buyer %d alone gets no answer within %s from %s%s", n+1, x.patience, x.app.Buyers[n].URL, i.log.last()))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

var errJam = errors.New("the buyers block each other inside the program")

// served returns, with the gates open, when all who have come are answered. errJam: nothing
// moves any more, and somebody is not.
func (r *run) served(ctx context.Context) error {
	for deadline := time.Now().Add(r.x.patience); ; time.Sleep(time.Millisecond) {
		switch {
		case len(r.deadEnd()) == 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return errors.New("a buyer is not answered")
		case r.restful() && !r.napping() && len(r.deadEnd()) > 0:
			return errJam
		}
	}
}
