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

// Rush runs a number of rounds. Each round resets the state and sends one burst of buyers. Their requests are those of
// oversell.yaml, which repeat if there are more buyers. When the program is idle, Rush runs the queries of
// oversell.yaml, and calls done.
//
// The gates hold nothing, and the program's own time-outs apply. So Rush first restarts the program. It cannot restart
// an attached program, whose connections keep the explorer's time-outs. If a round leaves work undone, Rush stops,
// because that work would disturb the next round. Even with an error, it returns the finished rounds. Afterwards, no
// schedule can run.
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

// crowd runs one round. It also reports whether the round has left no work behind (`clean`).
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
	// A buyer may be answered before its work is done: a thread may still run or sleep, or a command or its answer may be
	// in transit.
	r := p.Rest()
	resting, err := p.Await(ctx, time.Millisecond, func() bool {
		return r.IsRestful() && !p.Instances.Sleeps() && p.Gates.Connections.HandedOver()
	})
	switch {
	case err != nil:
		return c, false, err
	case !resting: // its remaining work may make the data consistent
		c.inconclusive("the program does not become idle within %s: its remaining work is not known", p.App.IdleWithin)
		return c, false, nil
	}
	most, left := p.Gates.Crowd.Gathered()
	c.AtOnce = most
	if err := p.Backends.End(ctx, left); err != nil { // the servers may still execute a command of a connection that was lost
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
