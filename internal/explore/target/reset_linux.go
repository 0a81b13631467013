package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// reset restores the state in which a run begins. The gates are open meanwhile, so the commands that it
// causes, for example by a NOTIFY, belong to the reset. It returns when the programs are idle. The error
// is one line.
func (x *Runner) reset(ctx context.Context) error {
	f := x.gateTable
	f.mu.Lock()
	shut := f.shut
	f.mu.Unlock()
	if shut {
		f.open()
	}
	if err := f.notices.begin(ctx); err != nil {
		return err
	}
	if err := x.servers.Reset(ctx); err != nil {
		return err
	}
	if err := x.resetByHTTP(ctx); err != nil {
		return err
	}
	if err := f.notices.hear(ctx); err != nil {
		return err
	}
	if !shut {
		return nil
	}
	if err := x.ownTraffic.staysQuiet(ctx, time.Time{}); err != nil {
		return err
	}
	r := x.newRun(false).rest
	for deadline := time.Now().Add(x.patience); f.notices.missing() || !r.restful(); f.bell.wait(look) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return voided("the program does not come to rest after `reset`", "within %s", x.patience)
		}
	}
	f.close()
	return nil
}

// resetByHTTP sends the requests of `reset` to each instance.
func (x *Runner) resetByHTTP(ctx context.Context) error {
	for _, r := range x.app.Reset.HTTP {
		for _, i := range x.instances.all {
			ask, err := x.probe.askingOf(ctx, i, r)
			if err != nil {
				return err
			}
			bounded, cancel := context.WithTimeout(ctx, x.patience)
			answer := ask(bounded)
			cancel()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			why := answer.err
			switch {
			case answer.late:
				why = fmt.Errorf("no answer within %s", x.patience)
			case why == nil && answer.reply.status >= http.StatusBadRequest:
				why = errors.New("it is answered " + answer.reply.text())
			}
			if why != nil {
				return fmt.Errorf("reset fails: %s %s: %w%s", r.Method, r.URL, why, i.said())
			}
		}
	}
	return nil
}
