package strike

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/promise"
)

// crash kills a whole shop process while one of its buyers holds. Another takes its place at
// once, as a supervisor would have it.
func crash() Fault {
	return Fault{
		Name: promise.Crash, About: "SIGKILL of a shop process while one of its buyers is about to write", Several: true,
		Strike: func(ctx context.Context, f *Field) (string, error) {
			if _, err := f.hold(ctx); err != nil {
				return "", err
			}
			inside, _ := f.under()
			if err := f.Processes.Kill(struck); err != nil {
				return "", err
			}
			ended, answers := f.Processes.Ended(struck), f.Processes.Answers(ctx, struck, 100*time.Millisecond)
			f.forget()
			if err := f.Processes.StartAgain(ctx, struck); err != nil {
				return "", fmt.Errorf("another process in the place of the one that was killed: %w", err)
			}
			switch {
			case ctx.Err() != nil:
				return "", ctx.Err()
			case !ended || answers:
				return "", missed("the process answers after its SIGKILL")
			case inside == 0:
				return "", errors.New("a buyer was stopped in a process that has none")
			}
			return fmt.Sprintf("process 1 was killed with %d buyers inside, one of them stopped before its write; it ended and answered no more, and another was started", inside), nil
		},
	}
}
