package target

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
)

// Rush sends one burst of buyers per round, each after a reset. When the program is idle, Rush runs the
// user's own queries. The buyers send the requests of the file, in turn. Rush calls done
// after each round.
//
// The gates are open, and time-outs are the program's own. So Rush restarts the program first; an
// attached program keeps the time-outs of its connections. A round that leaves work undone is the last
// one, since it would disturb the next. Rush returns the finished rounds with an error, too. No
// schedule can be run afterwards.
func (x *Runner) Rush(ctx context.Context, buyers, rounds int, done func(Crowd)) (all []Crowd, err error) {
	x.gateTable.timed.Store(true)
	x.gateTable.open()
	x.down = nil
	if x.app.Attach == nil {
		for _, i := range x.instances.all {
			if err := x.instances.end(ctx, i); err != nil {
				return nil, err
			}
		}
		if err := x.rehearsal.restart(ctx, x.instances.all...); err != nil {
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

// crowd runs one round. clean reports that nothing of it is left.
func (x *Runner) crowd(ctx context.Context, buyers int) (c Crowd, clean bool, err error) {
	c = Crowd{Buyers: buyers, Alone: x.solo}
	if err := x.reset(ctx); err != nil {
		return c, false, err
	}
	if err := x.ownTraffic.staysQuiet(ctx, time.Time{}); err != nil {
		return c, false, err
	}
	x.gateTable.rush.gather()
	all, undone, err := x.probe.askAll(ctx, buyers)
	if err != nil {
		return c, false, err
	}
	for _, one := range all {
		c.tell(one, x.app.Sold)
	}
	ended, err := x.instances.bury(ctx)
	if err != nil {
		return c, false, err
	}
	if ended != "" {
		undone = ended
	}
	switch resting, err := x.rests(ctx); {
	case err != nil:
		return c, false, err
	case !resting: // the program's next step may be the one that makes the data consistent
		c.inconclusive("the program does not become idle within %s: its remaining work is not known", x.patience)
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

// tell counts the answer to one buyer.
func (c *Crowd) tell(b told, sold app.Sale) {
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

// rests waits until the program is idle: no thread runs or sleeps with a time-out, and no command or
// answer is on its way. A buyer may be answered before its work is done.
func (x *Runner) rests(ctx context.Context) (bool, error) {
	r := x.newRun(false).rest
	handedOver := func() bool {
		x.gateTable.mu.Lock()
		defer x.gateTable.mu.Unlock()
		return x.gateTable.conns.handedOver()
	}
	for deadline := time.Now().Add(x.patience); ; time.Sleep(time.Millisecond) {
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case r.restful() && !x.instances.sleeps() && handedOver():
			return true, nil
		case time.Now().After(deadline):
			return false, nil
		}
	}
}

// gathered returns how many commands were at the servers at once. It waits until the servers have also
// finished the commands of connections that ended meanwhile.
func (x *Runner) gathered(ctx context.Context) (most int, err error) {
	most, left := x.gateTable.rush.gathered()
	for _, c := range left {
		if err := x.backends[c.Protocol].end(ctx, c.ID); err != nil {
			return most, err
		}
	}
	return most, nil
}
