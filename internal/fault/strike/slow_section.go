package strike

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/promise"
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
			start := time.Now()
			sold, err := f.besideHeld(ctx)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("a buyer of process 1 stood between its read and its write for %s, and its process answered; a lease is %s; %d units were sold beside it",
				time.Since(start).Round(10*time.Millisecond), f.Lease, sold), nil
		},
	}
}
