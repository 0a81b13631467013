package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
)

// clientClock sets the clock of shop B ahead by more than a lease. Meanwhile a buyer of shop A, the holder,
// has the lock and is stopped at its COMMIT. If clients compute when a lock ends, shop B considers the lock
// expired. The clocks of the servers stay right.
//
// Source: Redis documentation, SETNX, "Handling deadlocks": the clients' clocks must agree.
func clientClock() Fault {
	return Fault{
		Name: "client-clock", About: "the clock of the second process is ahead of the holder's by more than a lease",
		Needs: lockServers(), Stock: stock,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			offset := t.Times.outlast()
			ahead, err := setClock(ctx, t, offset)
			if err != nil {
				return "", err
			}
			if err := holdFor(ctx, t, failpoint.Commit, t.Times.Wait); err != nil {
				return "", err
			}
			held := time.Now()
			t.injected("the second process's clock is %s ahead", offset)
			if err := passOn(ctx, t, held); err != nil {
				return "", err
			}
			return clockDiffers(ahead, t.Times.Lease)
		},
	}
}

// setClock moves the clock of shop B until the fault is over. It returns how far B's clock, as B itself
// reports it, is ahead of this process.
func setClock(ctx context.Context, t *Testbed, offset time.Duration) (ahead time.Duration, _ error) {
	t.afterwards(func(context.Context) error { return t.B.Tell("clock 0s") })
	if err := t.B.Tell("clock " + offset.String()); err != nil {
		return 0, err
	}
	told, ok := seen(ctx, t, t.Times.Wait, "", history.Clock)
	if !ok {
		return 0, missed("the second process did not tell its time")
	}
	shown, err := time.Parse(time.RFC3339Nano, told.Outcome)
	return time.Until(shown), err
}

// clockDiffers returns a proof if the shop's clock was ahead by more than a lease, or ErrMissed if it was not.
func clockDiffers(ahead, lease time.Duration) (proof string, _ error) {
	if ahead <= lease {
		return "", missed("the second process's clock is %s ahead, and should be more than the lease of %s", ahead, lease)
	}
	return fmt.Sprintf("the holder reported that it holds; the second process's clock was %s ahead, and a lease is %s", ahead.Round(100*time.Millisecond), lease), nil
}
