package fault

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
)

// partition separates the holder's shop from its lock servers, but not from the
// database, while the holder is between its read and its write: its lease expires
// where the holder cannot see it.
func partition() Fault {
	return Fault{
		Name: "partition", About: "between the holder's shop and its lock servers", Needs: lockServers(), Stock: stock,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			if err := t.hold(ctx, failpoint.Read, t.Times.Wait); err != nil {
				return "", err
			}
			parted := t.A.links()
			t.afterwards(func(ctx context.Context) error {
				for _, l := range parted {
					l.heal(ctx)
				}
				settle(ctx, t.Times.Lease)
				return nil
			})
			err := part(parted, t.Times.Lease/4, func() { t.struck("nothing passes between the holder's shop and its lock servers") })
			if err != nil {
				return "", err
			}
			sendNext(ctx, t, t.Times.Reach())
			err = t.release()
			t.buyers.wait() // the holder's own release has failed, too
			return fmt.Sprintf("the holder reported that it has read; its way to %d lock servers let no question through from then on, and had before", len(parted)), err
		},
	}
}

// part lets nothing through the links, calls struck, and proves it: no server answers within
// the timeout, and all did before.
func part(links []*link, timeout time.Duration, struck func()) error {
	before := answering(links, 5*time.Second)
	for _, l := range links {
		if err := l.silence(); err != nil {
			return err
		}
	}
	struck()
	if after := answering(links, timeout); before < len(links) || after > 0 {
		return missed("%d of %d lock servers answered before the partition and %d through it", before, len(links), after)
	}
	return nil
}

// answering counts the links through which a server answers within the timeout. All
// are asked at once.
func answering(links []*link, timeout time.Duration) int {
	var (
		all sync.WaitGroup
		n   atomic.Int64
	)
	for _, l := range links {
		all.Go(func() {
			if _, err := l.roundTrip(timeout); err == nil {
				n.Add(1)
			}
		})
	}
	all.Wait()
	return int(n.Load())
}
