package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A rehearsal lets the buyers through with the gates open, so that the programs have loaded what
// they load at the first request. It knows which of them block each other.
type rehearsal struct {
	*Runner
	jams bool // all of its buyers at once may block each other for ever
}

// rehearse lets the instance's buyers through, with the gates open and all at once, twice:
// it fills its pools, and loads what it loads at the first request.
func (x *rehearsal) rehearse(ctx context.Context, i *instance) error {
	if x.shared {
		return x.rehearseShared(ctx, i)
	}
	x.floor.open()
	for range 2 {
		if err := x.servers.Reset(ctx); err != nil {
			return err
		}
		r := x.newRun(false)
		for _, id := range i.buyers() {
			if err := r.send(ctx, r.buyer(id)); err != nil {
				return err
			}
		}
		for _, id := range i.buyers() {
			if err := x.answered(ctx, i, r.buyer(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// answered returns when the buyer has its answer.
func (x *rehearsal) answered(ctx context.Context, i *instance, b *buyer) error {
	select {
	case <-b.answered:
		return nil
	case <-time.After(x.patience):
		return x.floor.orRefused(fmt.Errorf("buyer %d alone gets no answer within %s from %s%s", b.id, x.patience, x.app.Buyers[b.id-1].URL, i.said()))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rehearseShared lets the buyers of the one instance through, with the gates open, one after
// the other and then all at once. Where those block each other inside the program it is
// started anew, and they come one after the other only: the search will find it, too.
func (x *rehearsal) rehearseShared(ctx context.Context, i *instance) error {
	if i.line == "" {
		if err := x.settled(ctx); err != nil {
			return err
		}
	}
	if err := x.oneByOne(ctx, i); err != nil {
		return err
	}
	if x.jams || i.line == "" {
		return nil // a program that runs already cannot be started anew
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
	err := r.clearing.served(ctx)
	if err == nil || !errors.Is(err, errJam) {
		return err
	}
	x.jams = true
	for _, b := range r.buyers {
		_ = b.socket.Close()
	}
	if err := x.fleet.end(ctx, i); err != nil {
		return err
	}
	if err := i.start(); err != nil {
		return err
	}
	if err := i.ready(ctx); err != nil {
		return err
	}
	return x.oneByOne(ctx, i)
}

func (x *rehearsal) oneByOne(ctx context.Context, i *instance) error {
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
		if err := x.answered(ctx, i, b); err != nil {
			return err
		}
	}
	return nil
}

// idle waits until the programs are at rest, and notes what they wait for then.
func (x *rehearsal) idle(ctx context.Context, programs ...*instance) error {
	r := x.newRun(false).rest
	for deadline := time.Now().Add(x.patience); !r.restful(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			i := programs[max(0, slices.IndexFunc(programs, func(i *instance) bool { return !i.program.Asleep() }))]
			return fmt.Errorf("%s: it does not come to rest within %s after a request; a program that works by itself all the time cannot be explored%s", i.what(), x.patience, i.said())
		}
	}
	for _, i := range programs {
		if err := i.program.Refresh(); err != nil {
			return err
		}
	}
	for range idleLooks {
		for _, i := range programs {
			i.program.Baseline()
		}
		time.Sleep(idlePause)
	}
	return nil
}

// The idle program is looked at so often: a timer that comes twice a second is in it.
const (
	idleLooks = 60
	idlePause = 10 * time.Millisecond
)

// restart starts programs that have ended anew, and lets their buyers through.
func (x *rehearsal) restart(ctx context.Context, programs ...*instance) error {
	for _, i := range programs {
		if err := i.start(); err != nil {
			return err
		}
	}
	for _, i := range programs {
		if err := i.ready(ctx); err != nil {
			return err
		}
		if err := x.rehearse(ctx, i); err != nil {
			return err
		}
	}
	return x.idle(ctx, programs...)
}

// settled has a program that runs already forget the connections that it made before the
// gates were there: a pool finds out at the next request on each, which then fails.
func (x *rehearsal) settled(ctx context.Context) error {
	for range staleConnections {
		failed := false
		for n := range x.app.Buyers {
			if err := x.servers.Reset(ctx); err != nil {
				return err
			}
			x.floor.open()
			ask, err := x.asking(ctx, n+1)
			if err != nil {
				return err
			}
			answer := ask(ctx)
			failed = failed || answer.err != nil || answer.reply.failed()
		}
		if !failed {
			break
		}
	}
	return nil
}

// staleConnections are the most that a pool may have.
const staleConnections = 20
