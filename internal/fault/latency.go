package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/testbed"
)

// late is how long each answer of a lock server is held back; a section has
// several of them and stays within its lease.
const late = 30 * time.Millisecond

// latency puts 30 ms, more or less, before each answer of the lock servers.
func latency() Fault {
	return Fault{
		Name: "latency", About: "between the shops and their lock servers", Needs: lockServers(), Stock: stock, HolderLives: true,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			links := slices.Concat(t.A.Links, t.B.Links)
			t.afterwards(func(ctx context.Context) error { links.Heal(ctx); return nil })
			t.struck("%s before each answer of the lock servers", late)
			proof, err := Delay(links)
			if err != nil {
				return "", err
			}
			t.buyers.crowd(ctx, "late", 16, t.A, t.B)
			return proof, nil
		},
	}
}

// Delay holds back each answer that comes through the links, until they are healed, and proves it.
func Delay(links testbed.Links) (proof string, _ error) {
	if err := links.Delay(late, late/3); err != nil {
		return "", err
	}
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
