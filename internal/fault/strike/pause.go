package strike

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/promise"
)

// pause stops a whole shop process, its watchdogs included, for longer than the lease of the
// buyer that holds in it.
func pause() Fault {
	return Fault{
		Name: promise.Pause, About: "SIGSTOP of a shop process for longer than the lease of a buyer that holds in it, then SIGCONT", Several: true,
		Strike: func(ctx context.Context, f *Field) (proof string, err error) {
			release, err := f.hold(ctx)
			if err != nil {
				return "", err
			}
			defer release()
			if err := f.Processes.Freeze(struck); err != nil {
				return "", err
			}
			defer func() { err = errors.Join(err, f.Processes.Thaw(struck)) }()
			long, stopped := f.outlast(), time.Now()
			silent := false
			for !silent && time.Since(stopped) < f.Lease/2 { // a signal takes a moment to arrive
				silent = !f.Processes.Answers(ctx, struck, f.Lease/8)
			}
			silent = silent && !f.Processes.Answers(ctx, struck, long-time.Since(stopped))
			pauseFor(ctx, long-time.Since(stopped))
			took := time.Since(stopped)
			switch {
			case ctx.Err() != nil:
				return "", ctx.Err()
			case !silent:
				return "", missed("the process answered between its SIGSTOP and its SIGCONT")
			}
			return fmt.Sprintf("process 1 was stopped for %s while one of its buyers was stopped before its write, and answered nothing meanwhile; a lease is %s", took.Round(10*time.Millisecond), f.Lease), nil
		},
	}
}
