package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/promise"
)

// clockJump sets the wall clock of the lock server an hour ahead while the holder
// stands inside its COMMIT: Redis runs its TTLs by that clock. Of several nodes
// it is one, of a bare majority.
func clockJump() Fault {
	return Fault{
		Name: promise.ClockJump, Stock: stock,
		Strike: func(ctx context.Context, s *Scene) (string, error) {
			if s.Servers.noShim != "" {
				return "", missed("%s", s.Servers.noShim)
			}
			node, how := s.Servers.redis, "the lock is on its Redis"
			var err error
			if slices.Contains(s.Subject.Needs, lockstrategy.NeedsRedlock) {
				node = s.Servers.nodes[0]
				how, err = s.holdBarely(ctx)
			} else {
				err = s.hold(ctx, failpoint.Commit, s.Times.Wait)
			}
			if err != nil {
				return "", err
			}
			if err := node.clock.set(time.Hour); err != nil {
				return "", err
			}
			s.struck("the lock server's clock jumps an hour ahead")
			s.afterwards(func(context.Context) error { // what was written meanwhile would live for an hour
				return errors.Join(node.clock.set(0), node.forget())
			})
			ahead, err := node.ahead(ctx)
			if err != nil {
				return "", err
			}
			s.next(ctx, s.Times.within())
			if err := s.release(); err != nil {
				return "", err
			}
			proof, err := jumped(ahead)
			return how + "; " + proof, err
		},
	}
}

// jumped is the proof that a server's clock was moved: by its own word.
func jumped(ahead time.Duration) (proof string, _ error) {
	if ahead < 50*time.Minute {
		return "", missed("the server's clock is %s ahead, and should be an hour", ahead)
	}
	return fmt.Sprintf("the holder reported that it holds; the server's own TIME was %s ahead", ahead.Round(time.Second)), nil
}

// ahead is how far the server's clock is ahead of this process's.
func (r *redisNode) ahead(ctx context.Context) (time.Duration, error) {
	c := r.client()
	defer c.Close()
	now, err := c.Time(ctx).Result()
	return time.Until(now), err
}
