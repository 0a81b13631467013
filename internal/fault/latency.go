package fault

import (
	"context"
	"fmt"
	"time"
)

// late is how long each answer of a lock server is held back; a section has
// several of them and stays within its lease.
const late = 30 * time.Millisecond

// latency puts 30 ms, more or less, before each answer of the lock servers.
func latency() Fault {
	return Fault{
		Name: "latency", About: "between the shops and their lock servers", Needs: lockServers(), Stock: stock, HolderLives: true,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			var links []*link
			for _, shop := range t.shops() {
				links = append(links, shop.links()...)
			}
			t.afterwards(func(ctx context.Context) error {
				for _, l := range links {
					l.heal(ctx)
				}
				return nil
			})
			if err := delay(links); err != nil {
				return "", err
			}
			t.struck("%s before each answer of the lock servers", late)
			took, err := quickest(links)
			if err != nil {
				return "", err
			}
			t.buyers.crowd(ctx, "late", 16, t.A, t.B)
			return held(took)
		},
	}
}

// delay holds back each answer that comes through the links.
func delay(links []*link) error {
	for _, l := range links {
		if err := l.delay(late, late/3); err != nil {
			return err
		}
	}
	return nil
}

// quickest is the shortest of the links' round trips.
func quickest(links []*link) (time.Duration, error) {
	least := time.Hour
	for _, l := range links {
		took, err := l.roundTrip(5 * time.Second)
		if err != nil {
			return 0, err
		}
		least = min(least, took)
	}
	return least, nil
}

// held is the proof that answers were held back.
func held(quickest time.Duration) (proof string, _ error) {
	if quickest < late/2 {
		return "", missed("a lock server answered within %s", quickest)
	}
	return fmt.Sprintf("no lock server answered within %s", quickest.Round(time.Millisecond)), nil
}
