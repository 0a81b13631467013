package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/rest"
)

// Reset restores the state in which a run begins. The gates are open meanwhile, so the commands that it
// causes, for example by a NOTIFY, belong to the reset. It returns when the programs are idle. The error
// is one line.
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
			answer, err := p.Probe().Ask(ctx, i, r)
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			why := answer.Err
			switch {
			case answer.Late:
				why = fmt.Errorf("no answer within %s; `idle-within:` gives it more time", p.Instances.Patience())
			case why == nil && answer.Reply.Status >= http.StatusBadRequest:
				why = errors.New("it is answered " + answer.Reply.Text())
			}
			if why != nil {
				return fmt.Errorf("reset fails: %s %s: %w%s", r.Method, r.URL, why, i.Said())
			}
		}
	}
	return nil
}
