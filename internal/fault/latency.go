package fault

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// late is the delay of each answer of a lock server. A critical section needs several answers and
// still ends within its lease.
const late = 30 * time.Millisecond

// latency delays each answer of the lock servers by about 30 ms while 16 buyers buy.
func latency() Fault {
	return Fault{
		Name: "latency", About: "every answer of the lock servers is delayed by about 30 ms", Needs: lockServers(), Stock: stock, HolderLives: true,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			links := slices.Concat(t.A.Links, t.B.Links)
			heal(t, links)
			if err := links.Delay(late, late/3); err != nil {
				return "", err
			}
			t.injected("%s before each answer of the lock servers", late)
			took, err := links.Quickest()
			if err != nil {
				return "", err
			}
			t.buyers.crowd(ctx, "late", 16, t.A, t.B)
			return held(took)
		},
	}
}

func held(quickest time.Duration) (proof string, _ error) {
	if quickest < late/2 {
		return "", missed("a lock server answered within %s", quickest)
	}
	return fmt.Sprintf("no lock server answered within %s", quickest.Round(time.Millisecond)), nil
}
