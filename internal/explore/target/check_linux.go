package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	for _, i := range x.programs {
		if err := x.rehearse(ctx, i); err != nil {
			return c, err
		}
	}
	if err := x.idle(ctx, x.programs...); err != nil {
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
	err = r.playAlone(ctx, id)
	a.Took = time.Since(begun)
	for _, s := range r.record.steps {
		a.Commands = append(a.Commands, Seen{Server: s.Server, Text: s.Command, Result: s.Result})
	}
	a.Passed = x.floor.passed()
	_, void := schedule.AsVoid(err)
	if !void {
		x.habits.learn(r.lessons)
	}
	switch me := r.buyer(id); {
	case void:
		a.Why = err.Error()
	case err != nil:
		return a, errors.Join(err, r.finish(context.WithoutCancel(ctx), true))
	case !r.answeredBy(me):
		a.Why = "it is not answered, and nothing moves: it waits for something that no gate sees"
	case me.err != nil:
		a.Why = "its request fails: " + me.err.Error() + x.programOf(id).said()
	case me.reply.failed():
		a.Answer = me.reply.text()
		a.Why = "it is answered " + a.Answer + x.programOf(id).said()
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
			return a, errors.Join(err, r.finish(context.WithoutCancel(ctx), true))
		}
		if len(found) > 0 {
			a.Why = a.Request + " is answered " + a.Answer + ", and then " + found[0].Query + " returns a row: mend the rule of `never`, or what `sold` says"
		}
	}
	if err := r.finish(context.WithoutCancel(ctx), !r.answeredBy(r.buyer(id))); err != nil {
		return a, err
	}
	return a, nil
}

// playAlone lets the buyer's commands go as they come.
func (r *run) playAlone(ctx context.Context, id int) error {
	if err := r.send(ctx, r.buyer(id)); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	for range maxSteps {
		actions, err := r.actions(ctx)
		if err != nil {
			return err
		}
		r.x.solo = max(r.x.solo, r.x.floor.standing())
		at := slices.IndexFunc(actions, func(a action) bool { return a.event == nil })
		if at < 0 {
			return nil
		}
		c := actions[at].op.Conn()
		if err := r.x.servers.MayFollow(ctx, c.Protocol, c.ID); err != nil {
			return err
		}
		if err := r.step(ctx, actions[at]); err != nil {
			return err
		}
	}
	return voided("it goes round in circles", "more than %d commands", maxSteps)
}
