package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/rest"
)

// Reset restores the state in which a run begins, and returns when the programs are idle. Meanwhile, the gates are
// open. So a command that the reset causes, for example by a NOTIFY, is no step of the run. The error is one line.
func (p Programs) Reset(ctx context.Context) error {
	notices := p.Gates.Notices
	shut := p.Gates.Table.IsShut()
	if shut {
		p.Gates.Open()
	}
	if err := notices.Begin(ctx); err != nil {
		return err
	}
	if err := p.Servers.Reset(ctx); err != nil {
		return err
	}
	if err := p.resetByHTTP(ctx); err != nil {
		return err
	}
	if err := p.before(ctx); err != nil {
		return err
	}
	if err := notices.Hear(ctx); err != nil {
		return err
	}
	if !shut {
		return nil
	}
	if err := p.StaysQuiet(ctx, time.Time{}); err != nil {
		return err
	}
	r := p.Rest()
	switch rests, err := p.Await(ctx, rest.Look, func() bool { return !notices.Missing() && r.IsRestful() }); {
	case err != nil:
		return err
	case !rests:
		return naming.Void("the program does not become idle after `reset`", "within %s; `idle-within:` gives it more time", p.App.IdleWithin)
	}
	p.Gates.Close()
	return nil
}

// resetByHTTP sends the requests of `reset` to each instance.
func (p Programs) resetByHTTP(ctx context.Context) error {
	for _, r := range p.App.Reset.HTTP {
		for _, i := range p.Instances.All {
			if _, err := p.send(ctx, i, r); err != nil {
				return fmt.Errorf("reset fails: %w", err)
			}
		}
	}
	return nil
}

// before sends the requests of `before` in oversell.yaml for each buyer, and keeps values from their answers.
func (p Programs) before(ctx context.Context) error {
	for n := range p.App.Buyers {
		buyer, values := n+1, map[string]string{}
		for _, b := range p.App.Before {
			reply, err := p.send(ctx, p.Instances.Of(buyer), b.With(buyer, values))
			if err != nil {
				return fmt.Errorf("before fails for buyer %d: %w", buyer, err)
			}
			for name, v := range b.Values {
				text, found := v.In(reply.Header, reply.Body)
				if !found {
					return fmt.Errorf("before fails for buyer %d: %s %s is answered %s, without %s: %s; correct `values`", buyer, b.Method, b.URL, reply.Text(), name, v)
				}
				values[b.Name+"."+name] = text
			}
		}
		p.handed[buyer] = values
	}
	return nil
}

// Request returns a buyer's request, filled with the values that the last Reset got from the answers to `before`.
func (p Programs) Request(buyer int) app.Request {
	return p.App.Buyers[buyer-1].With(buyer, p.handed[buyer])
}

func (p Programs) send(ctx context.Context, i *instance.Instance, r app.Request) (reply client.Reply, _ error) {
	answer, err := p.Probe().Ask(ctx, i, r)
	if err != nil {
		return reply, err
	}
	if ctx.Err() != nil {
		return reply, context.Cause(ctx)
	}
	why := answer.Err
	switch {
	case answer.Late:
		why = fmt.Errorf("no answer within %s; `idle-within:` gives it more time", p.Instances.Patience())
	case why == nil && answer.Reply.Status >= http.StatusBadRequest:
		why = errors.New("it is answered " + answer.Reply.Text())
	}
	if why != nil {
		return reply, fmt.Errorf("%s %s: %w%s", r.Method, r.URL, why, i.Said())
	}
	return answer.Reply, nil
}
