package fault

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/testbed"
)

// late is how long each answer of a lock server is held back; a section has
// several of them and stays within its lease.
const late = 30 * time.Millisecond

// latency puts 30 ms, more or less, before each answer of the lock servers: in a cell for 16
// buyers, in a running rush for one lease from the first sale on.
func latency() Fault {
	return Fault{
		Name: "latency", About: "between the shops and their lock servers", Needs: lockServers(), Stock: stock, HolderLives: true,
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
	sold := r.tally.await(ctx, 1, r.times.Wait) // the buyers may be about to come
	if sold > 0 {
		sold += r.tally.await(ctx, math.MaxInt, r.times.Lease)
	}
	if sold < 2 && ctx.Err() == nil { // the first may have had its lock before
		return "", missed("%d units were sold while the answers were held back, and it takes two", sold)
	}
	return fmt.Sprintf("%s, and %d units were sold so", proof, sold), nil
}

// delay holds back each answer that comes through the links, and proves it.
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

// held is the proof that answers were held back.
func held(quickest time.Duration) (proof string, _ error) {
	if quickest < late/2 {
		return "", missed("a lock server answered within %s", quickest)
	}
	return fmt.Sprintf("no lock server answered within %s", quickest.Round(time.Millisecond)), nil
}
