package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// Check resets, sees whether an invariant is broken before anybody came, and lets each buyer
// through alone.
func (x *Runner) Check(ctx context.Context) (c Check, err error) {
	c.Servers = x.Servers()
	x.ctx = ctx
	if err := x.servers.Reset(ctx); err != nil {
		return c, err
	}
	found, err := x.servers.Never(ctx, 0)
	if err != nil {
		return c, err
	}
	if len(found) > 0 {
		return c, fmt.Errorf("never: %s returns a row right after reset, before any buyer came: mend the query, or have reset make a state that it allows", found[0].Query)
	}
	if x.watched, _, err = x.servers.Watch(ctx); err != nil {
		return c, err
	}
	for _, i := range x.fleet.all {
		if err := x.rehearsal.rehearse(ctx, i); err != nil {
			return c, err
		}
	}
	if err := x.rehearsal.idle(ctx, x.fleet.all...); err != nil {
		return c, err
	}
	for n := range x.app.Buyers {
		alone, err := x.alone(ctx, n+1)
		if err != nil {
			return c, err
		}
		c.Buyers = append(c.Buyers, alone)
	}
	x.coarse = x.short
	return c, nil
}

// alone runs one buyer, step by step.
func (x *Runner) alone(ctx context.Context, id int) (a Alone, err error) {
	b := x.app.Buyers[id-1]
	a = Alone{Buyer: id, Request: b.Method + " " + b.URL}
	if err := x.servers.Reset(ctx); err != nil {
		return a, err
	}
	x.floor.close()
	r := x.newRun(true)
	begun := time.Now()
	_, err = conduct.New(alone{r, id}, nil, nil, conduct.Limits{Steps: maxSteps}).Run(ctx, func(p *schedule.Point) (string, error) { return p.FirstMove(), nil })
	a.Took = time.Since(begun)
	for _, s := range r.record.Steps {
		a.Commands = append(a.Commands, Seen{Server: s.Server, Text: s.Command, Result: s.Result})
	}
	x.floor.mu.Lock()
	a.Passed = slices.Clone(x.floor.noted)
	x.floor.mu.Unlock()
	_, void := schedule.AsVoid(err)
	if !void {
		x.habits.learn(r.whose.lessons)
	}
	switch me := r.buyer(id); {
	case void:
		a.Why = err.Error()
	case err != nil:
		return a, errors.Join(err, r.clearing.finish(context.WithoutCancel(ctx), true))
	case !r.answeredBy(me):
		a.Why = "it is not answered, and nothing moves: it waits for something that no gate sees"
	case me.err != nil:
		a.Why = "its request fails: " + me.err.Error() + x.fleet.of(id).said()
	case me.reply.failed():
		a.Answer = me.reply.text()
		a.Why = "it is answered " + a.Answer + x.fleet.of(id).said()
		if x.app.Attach != nil {
			a.Why += "; a program that runs already must look for its servers at the gates, and connect anew when a connection is broken"
		}
	default:
		a.Answer, a.Sold = me.reply.text(), slices.Contains(x.app.Sold, me.reply.status)
		sold := 0
		if a.Sold {
			sold = 1
		}
		found, err := x.servers.Never(ctx, sold)
		if err != nil {
			return a, errors.Join(err, r.clearing.finish(context.WithoutCancel(ctx), true))
		}
		if len(found) > 0 {
			a.Why = a.Request + " is answered " + a.Answer + ", and then " + found[0].Query + " returns a row: mend the rule of `never`, or what `sold` says"
		}
	}
	if err := r.clearing.finish(context.WithoutCancel(ctx), !r.answeredBy(r.buyer(id))); err != nil {
		return a, err
	}
	return a, nil
}

// An alone is one buyer as the conductor's subject: the others do not come, and nothing happens
// to it.
type alone struct {
	*run
	id int
}

// Begin is conduct.Subject.Begin.
func (a alone) Begin(ctx context.Context) error {
	if err := a.send(ctx, a.buyer(a.id)); err != nil {
		return err
	}
	return a.settling.settle(ctx)
}

// Moves is conduct.Subject.Moves.
func (a alone) Moves(context.Context) ([]move, error) {
	moves, err := choices{a.run}.ready()
	a.x.solo = max(a.x.solo, a.standing())
	return moves, err
}

// standing is how many commands could be at the servers at once now, if all were let go.
func (a alone) standing() int {
	f := a.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.flying)
	for _, o := range f.held {
		if !o.behind {
			n++
		}
	}
	return n
}

// Do is conduct.Subject.Do.
func (a alone) Do(ctx context.Context, m move) error {
	c := m.Command.Conn()
	if err := a.x.servers.MayFollow(ctx, c.Protocol, c.ID); err != nil {
		return err
	}
	return a.run.Do(ctx, m)
}

// End is conduct.Subject.End. The buyer is judged by what it was answered, see Runner.alone.
func (a alone) End(_ context.Context, e *schedule.Ended, err error) error {
	if err == nil && e.Cut {
		err = voided("it goes round in circles", "more than %d commands", maxSteps)
	}
	return err
}
