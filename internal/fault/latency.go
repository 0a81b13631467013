package fault

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/testbed"
)

// late is the delay of each answer of a lock server. A section needs several answers and still ends
// within its lease.
const late = 30 * time.Millisecond

// latency delays each answer of the lock servers by about 30 ms. In a cell it does so for 16
// buyers, in a running rush for one lease from the first sale on.
func latency() Fault {
	return Fault{
		Name: "latency", About: "every answer of the lock servers is delayed by about 30 ms", Needs: lockServers(), Stock: stock, HolderLives: true,
		AboutRush: "30 ms, more or less, before each answer of the lock servers", Lacks: lacksLockServers,
		Inject: either(latencyInCell, latencyInRush),
	}
}

func latencyInCell(ctx context.Context, t *Testbed) (string, error) {
	proof, err := delay(t, slices.Concat(t.A.Links, t.B.Links))
	if err != nil {
		return "", err
	}
	t.buyers.crowd(ctx, "late", 16, t.A, t.B)
	return proof, nil
}

func latencyInRush(ctx context.Context, r *RunningRush) (string, error) {
	proof, err := delay(r, slices.Concat(r.Links...))
	if err != nil {
		return "", err
	}
	sold := r.tally.await(ctx, 1, r.times.Wait) // the buyers may not have started yet
	if sold > 0 {
		sold += r.tally.await(ctx, math.MaxInt, r.times.Lease)
	}
	if sold < 2 && ctx.Err() == nil { // the first buyer may have got its lock before the delay
		return "", missed("%d units were sold while the answers were held back, and it takes two", sold)
	}
	return fmt.Sprintf("%s, and %d units were sold so", proof, sold), nil
}

// delay delays each answer that comes through the links, and proves it.
func delay(f Field, links testbed.Links) (proof string, _ error) {
	heal(f, links)
	if err := links.Delay(late, late/3); err != nil {
		return "", err
	}
	f.injected("%s before each answer of the lock servers", late)
	took, err := links.Quickest()
	if err != nil {
		return "", err
	}
	return held(took)
}

// held proves that answers were delayed.
func held(quickest time.Duration) (proof string, _ error) {
	if quickest < late/2 {
		return "", missed("a lock server answered within %s", quickest)
	}
	return fmt.Sprintf("no lock server answered within %s", quickest.Round(time.Millisecond)), nil
}
