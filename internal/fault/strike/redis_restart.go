package strike

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// redisRestart has Redis lose what it knows while a buyer holds, and gives others time to
// come in beside it.
func redisRestart() Fault {
	return Fault{
		Name: promise.RedisRestart, About: "Redis comes back empty while a buyer is about to write",
		Cannot: func(e *engine.Engine) string {
			if len(serversOf(e, lockstrategy.NeedsRedis)) != 1 {
				return "Redis is not the engine's own, or several servers"
			}
			return ""
		},
		Strike: func(ctx context.Context, f *Field) (string, error) {
			release, err := f.hold(ctx)
			if err != nil {
				return "", err
			}
			defer release()
			_, sold := f.under()
			keys, err := forget(ctx, serversOf(f.Engine, lockstrategy.NeedsRedis)[0], f.Product)
			if err != nil {
				return "", err
			}
			pauseFor(ctx, min(f.Lease/2, time.Second))
			_, then := f.under()
			return fmt.Sprintf("Redis had %d keys of the product and came back without them; %d units were sold beside the buyer that was stopped before its write", keys, then-sold), ctx.Err()
		},
	}
}
