package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// clockJump sets the wall clock of the lock server an hour ahead while a buyer that holds the lock is stopped
// at its COMMIT. Redis expires keys by that clock. With several lock servers, only a bare majority grants the
// lock, and the clock of one server in that majority jumps.
func clockJump() Fault {
	return Fault{
		Name: "clock-jump", About: "the clock of a lock server jumps an hour ahead while the holder is in its critical section",
		Needs: []lockstrategy.Need{lockstrategy.NeedsRedis, lockstrategy.NeedsRedlock}, Stock: stock, Lease: longLease,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			if why := t.Servers.clocks.missing; why != "" {
				return "", missed("%s", why)
			}
			node, how, err := holdOn(ctx, t)
			if err != nil {
				return "", err
			}
			held := time.Now()
			if err := node.clock.set(time.Hour); err != nil {
				return "", err
			}
			t.injected("the lock server's clock jumps an hour ahead")
			t.afterwards(func(context.Context) error { // otherwise, keys written before the clock is reset would live for an hour
				return errors.Join(node.clock.set(0), restart(node))
			})
			ahead, err := node.ahead(ctx)
			if err != nil {
				return "", err
			}
			if err := passOn(ctx, t, held); err != nil {
				return "", err
			}
			proof, err := jumped(ahead)
			return how + "; " + proof, err
		},
	}
}

// holdOn stops a buyer that holds the lock. It returns a server that granted the lock and a description for
// the proof.
func holdOn(ctx context.Context, t *Testbed) (node *redisNode, how string, err error) {
	if slices.Contains(t.Subject.Needs, lockstrategy.NeedsRedlock) {
		how, err = holdBarely(ctx, t)
		return t.Servers.nodes[0], how, err
	}
	if err = holdFor(ctx, t, failpoint.Commit, t.Times.Wait); err == nil {
		node, _, err = keeperOf(ctx, t)
	}
	return node, "the lock is on its Redis", err
}

// jumped returns a proof if the server's own TIME shows that its clock was moved, and ErrMissed otherwise.
func jumped(ahead time.Duration) (proof string, _ error) {
	if ahead < 50*time.Minute {
		return "", missed("the server's clock is %s ahead, and should be an hour", ahead)
	}
	return fmt.Sprintf("the holder reported that it holds; the server's own TIME was %s ahead", ahead.Round(time.Second)), nil
}
