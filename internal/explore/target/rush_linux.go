package target

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
)

// Rush has a crowd of so many buyers come at once, rounds times, each after a reset, and asks
// the user's own queries when all is at rest. The requests are those of the file, in turn.
// done is told of each round.
//
// The gates are open, and time-outs are the program's own, so it is started anew first; one
// that runs already keeps those of the connections that it has. A round that leaves anything
// undone is the last one: it would reach into the next. The rounds that there were are returned
// with an error, too. No schedule can be run afterwards.
func (x *Runner) Rush(ctx context.Context, buyers, rounds int, done func(Crowd)) (all []Crowd, err error) {
	x.floor.timed.Store(true)
	x.floor.open()
	if x.app.Attach == nil {
		for _, i := range x.fleet.all {
			if err := x.fleet.end(ctx, i); err != nil {
				return nil, err
			}
		}
		if err := x.rehearsal.restart(ctx, x.fleet.all...); err != nil {
			return nil, err
		}
	}
	for range rounds {
		c, clean, err := x.crowd(ctx, buyers)
		if err != nil {
			return all, err
		}
		all = append(all, c)
		done(c)
		if !clean {
			break
		}
	}
	return all, nil
}

// crowd is one round. clean: nothing of it is left.
func (x *Runner) crowd(ctx context.Context, buyers int) (c Crowd, clean bool, err error) {
	c = Crowd{Buyers: buyers, Alone: x.solo}
	if err := x.servers.Reset(ctx); err != nil {
		return c, false, err
	}
	x.floor.rush.gather()
	all, undone, err := x.door.askAll(ctx, buyers)
	if err != nil {
		return c, false, err
	}
	for _, one := range all {
		c.tell(one, x.app.Sold)
	}
	ended, err := x.fleet.bury(ctx)
	if err != nil {
		return c, false, err
	}
	if ended != "" {
		undone = ended
	}
	switch resting, err := x.rests(ctx); {
	case err != nil:
		return c, false, err
	case !resting: // its next step may be the one that makes the books right
		c.inconclusive("the program does not come to rest within %s: what it has still to do is not known", x.patience)
		return c, false, nil
	}
	if c.AtOnce, err = x.gathered(ctx); err != nil {
		return c, false, err
	}
	if err := c.judge(func(t app.Told) ([]app.Finding, error) { return x.servers.Never(ctx, t) }); err != nil {
		return c, false, err
	}
	c.leaves(undone)
	return c, undone == "", nil
}

// tell counts what one buyer was told. sold are the answers that mean a sale.
func (c *Crowd) tell(b told, sold []int) {
	if b.late {
		c.late++
	}
	if b.err != nil && b.sent {
		c.Unanswered++
		return
	}
	var t app.Told
	count(&t, b.reply, b.err, sold)
	c.Sold += t.Sold
	c.Failed += t.Failed
}

// rests waits until nothing of the program is under way any more: no thread runs, or sleeps
// only for a while, and no command and no answer is on its way. A buyer may have been
// answered before its work was done.
func (x *Runner) rests(ctx context.Context) (bool, error) {
	r := x.newRun(false).rest
	handedOver := func() bool {
		x.floor.mu.Lock()
		defer x.floor.mu.Unlock()
		return x.floor.conns.handedOver()
	}
	for deadline := time.Now().Add(x.patience); ; time.Sleep(time.Millisecond) {
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case r.restful() && !x.fleet.naps() && handedOver():
			return true, nil
		case time.Now().After(deadline):
			return false, nil
		}
	}
}

// gathered is how many commands were at the servers at once. It returns when the servers are
// done, too, with commands of connections that have gone meanwhile.
func (x *Runner) gathered(ctx context.Context) (most int, err error) {
	most, left := x.floor.rush.gathered()
	for _, c := range left {
		if err := x.backends[c.Protocol].end(ctx, c.ID); err != nil {
			return most, err
		}
	}
	return most, nil
}
