package target

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/session"
	"github.com/oversell/oversell/internal/explore/witness"
)

// Rush runs the given number of rounds. Each round resets the state and sends one burst, in which the buyers cycle
// through the requests in oversell.yaml. When the program is idle, Rush runs the user's own queries, and calls done.
//
// The gates hold nothing, and the program's own time-outs apply. So Rush restarts the program first. An attached
// program is not restarted: its connections keep the explorer's time-outs. After a round that leaves work undone,
// Rush stops, since that work would disturb the next round. Rush returns the finished rounds even with an
// error. No schedule can be run afterwards.
func (x *Runner) Rush(ctx context.Context, buyers, rounds int, done func(Crowd)) (all []Crowd, err error) {
	x.programs.Gates.EndByClock()
	x.programs.Gates.Open()
	if err := x.recovery.RestartAll(ctx); err != nil {
		return nil, err
	}
	for range rounds {
		c, clean, err := crowd(ctx, x.programs, Crowd{Buyers: buyers, Alone: x.solo})
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

// crowd runs one round. It also reports whether the round has left no work behind (clean).
func crowd(ctx context.Context, p session.Programs, c Crowd) (_ Crowd, clean bool, err error) {
	if err := p.Reset(ctx); err != nil {
		return c, false, err
	}
	if err := p.StaysQuiet(ctx, time.Time{}); err != nil {
		return c, false, err
	}
	p.Gates.Crowd.Gather()
	all, undone, err := p.Probe().AskAll(ctx, c.Buyers, p.Request)
	if err != nil {
		return c, false, err
	}
	for _, one := range all {
		c.tell(one, p.App)
	}
	ended, err := p.Instances.Bury(ctx)
	if err != nil {
		return c, false, err
	}
	if ended != "" {
		undone = ended
	}
	// A buyer may be answered before its work is done: a thread may still run or sleep, or a command or an answer may
	// be in transit.
	r := p.Rest()
	resting, err := p.Await(ctx, time.Millisecond, func() bool {
		return r.IsRestful() && !p.Instances.Sleeps() && p.Gates.Connections.HandedOver()
	})
	switch {
	case err != nil:
		return c, false, err
	case !resting: // the program's next step may be the one that makes the data consistent
		c.inconclusive("the program does not become idle within %s: its remaining work is not known", p.App.IdleWithin)
		return c, false, nil
	}
	most, left := p.Gates.Crowd.Gathered()
	c.AtOnce = most
	if err := p.Backends.End(ctx, left); err != nil { // the servers of lost connections may still execute a command
		return c, false, err
	}
	if err := c.judge(func(t app.Told) ([]witness.Finding, error) { return p.Servers.Never(ctx, t) }); err != nil {
		return c, false, err
	}
	c.leaves(undone)
	return c, undone == "", nil
}

func (c *Crowd) tell(b instance.Told, a *app.App) {
	if b.Late {
		c.late++
	}
	if b.Err != nil && b.Sent {
		c.Unanswered++
		return
	}
	var t app.Told
	client.Count(&t, b.Reply, b.Err, a)
	c.Sold += t.Sold
	c.Failed += t.Failed
}
