package strike

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/promise"
)

// slowSection keeps a buyer between its read and its write for longer than its lease, while
// its process runs on: a watchdog can renew, and a lease that knows its end can end the section.
func slowSection() Fault {
	return Fault{
		Name: promise.SlowSection, About: "a buyer stands between its read and its write for longer than its lease, and its process runs on",
		Strike: func(ctx context.Context, f *Field) (string, error) {
			release, err := f.holdAt(ctx, failpoint.Read)
			if err != nil {
				return "", err
			}
			defer release()
			_, before := f.under()
			start := time.Now()
			pauseFor(ctx, f.outlast())
			took := time.Since(start)
			_, sold := f.under()
			switch {
			case ctx.Err() != nil:
				return "", ctx.Err()
			case !f.Processes.Answers(ctx, struck, f.Lease):
				return "", missed("the process of the buyer that was stopped did not answer")
			}
			return fmt.Sprintf("a buyer of process 1 stood between its read and its write for %s, and its process answered; a lease is %s; %d units were sold beside it",
				took.Round(10*time.Millisecond), f.Lease, sold-before), nil
		},
	}
}
