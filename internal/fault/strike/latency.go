package strike

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
)

// latency holds back the answers of the lock servers while the crowd buys, for a lease
// from the first sale on.
func latency() Fault {
	return Fault{
		Name: promise.Latency, About: "30 ms, more or less, before each answer of the lock servers", Cannot: withoutLockServers,
		Strike: func(ctx context.Context, f *Field) (string, error) {
			links := slices.Concat(f.Processes.Links()...)
			defer links.Heal(context.WithoutCancel(ctx))
			proof, err := fault.Delay(links)
			if err != nil {
				return "", err
			}
			sold := f.meanwhile(ctx, 1, f.Wait) // the crowd may be about to come
			if sold > 0 {
				sold += f.meanwhile(ctx, math.MaxInt, f.Lease)
			}
			switch {
			case ctx.Err() != nil:
				return "", ctx.Err()
			case sold < 2: // the first may have had its lock before
				return "", missed("%d units were sold while the answers were held back, and it takes two", sold)
			}
			return fmt.Sprintf("%s, and %d units were sold so", proof, sold), nil
		},
	}
}
