package target

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A renewal is the state of the connections after a discarded run.
type renewal byte

const (
	unneeded renewal = iota
	due              // all connections were cut; recover lets the programs open others
	done             // that has happened, and no run has succeeded since
)

// A recovery decides what the programs need after a discarded run. A start of a real shop may take half a
// minute, so it restarts them only if something cheaper did not help.
type recovery struct {
	renewal   renewal
	diverged  bool // the previous run diverged, and nothing was done
	restarted bool // the previous run diverged, and the programs were restarted
	futile    bool // after such a restart, the next run diverged, too
}

// after records the end of a run. serves reports that the programs may go on as they are: a program that
// sent other commands than before still serves. If the next run diverges, too, the cause may be in the
// program's memory, which only a restart empties. cuts reports that new connections may be enough: the
// cause is another one, or a restart did not help before.
func (c *recovery) after(err error) (serves, cuts bool) {
	void, discarded := schedule.AsVoid(err)
	if err == nil {
		c.renewal, c.restarted = unneeded, false
	}
	c.futile = c.futile || void.Diverged && c.restarted
	c.diverged = void.Diverged && !c.diverged
	return c.diverged, discarded && (!void.Diverged || c.futile)
}

// unstickTime bounds the wait for the buyers of a discarded run: first with the gates open, then with the
// connections cut.
const unstickTime = 4 * time.Second

// cut ends a discarded run without an end of its programs. It lets the buyers go on and then ends all
// connections, whose transactions and locks end with them. It returns false if the programs must be
// restarted: one was killed, a buyer is not answered, or the previous run was discarded, too.
func (r clearing) cut(ctx context.Context) bool {
	x := r.x
	if x.recovery.renewal == done || x.rehearsal.cold || slices.ContainsFunc(x.instances.all, func(i *instance) bool { return !i.up() || i.line == "" }) {
		return false
	}
	r.current = 0
	for _, o := range x.gateTable.open() {
		if x.backends[o.Conn().Protocol].interrupt(ctx, o.Conn().ID) != nil {
			return false
		}
	}
	answered := func() bool {
		deadline := time.Now().Add(unstickTime)
		for len(r.deadEnd()) > 0 && time.Now().Before(deadline) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return len(r.deadEnd()) == 0
	}
	answered()
	x.gateTable.mu.Lock()
	conns := x.gateTable.conns.inOrder()
	x.gateTable.mu.Unlock()
	for _, c := range conns {
		c.Cut()
	}
	for _, c := range conns {
		if x.backends[c.Protocol].end(ctx, c.ID) != nil {
			return false
		}
	}
	if !answered() {
		return false
	}
	x.recovery.renewal = due
	return true
}

// renew lets the programs open new connections after cut, and rehearses the buyers as after a start.
func (x *rehearsal) renew(ctx context.Context) error {
	served, err := x.reopened(ctx)
	if err != nil {
		return err
	}
	if !served {
		return errors.New("the program does not open new connections")
	}
	for _, i := range x.instances.all {
		if err := x.rehearse(ctx, i); err != nil {
			return err
		}
	}
	if err := x.idle(ctx, x.instances.all...); err != nil {
		return err
	}
	x.gateTable.close()
	return x.holdings.remember(ctx)
}

// staleConnections is the maximum number of rounds of requests in reopened.
const staleConnections = 20

// reopened sends requests until no buyer's request fails, and reports whether that has happened. A pool
// notices a broken connection at its next request, which fails.
func (x *rehearsal) reopened(ctx context.Context) (bool, error) {
	for range staleConnections {
		failed := false
		for n := range x.app.Buyers {
			if err := x.reset(ctx); err != nil {
				return false, err
			}
			x.gateTable.open()
			ask, err := x.probe.asking(ctx, n+1)
			if err != nil {
				return false, err
			}
			bounded, cancel := context.WithTimeout(ctx, x.patience)
			answer := ask(bounded)
			cancel()
			failed = failed || answer.err != nil || answer.reply.failed()
		}
		if !failed {
			return true, nil
		}
	}
	return false, context.Cause(ctx)
}
