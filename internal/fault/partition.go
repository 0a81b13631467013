package fault

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/promise"
)

// partition parts the holder's shop from its lock servers, and not from the
// database, while the holder is between its read and its write: its lease runs
// out where it cannot see it.
func partition() Fault {
	return Fault{Name: promise.Partition, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		if err := s.hold(ctx, failpoint.Read, s.Times.Wait); err != nil {
			return "", err
		}
		parted := s.A.links()
		s.afterwards(func(ctx context.Context) error {
			for _, l := range parted {
				l.heal(ctx)
			}
			s.settle(ctx)
			return nil
		})
		before := answering(parted, 5*time.Second)
		for _, l := range parted {
			if err := l.silence(); err != nil {
				return "", err
			}
		}
		s.struck("nothing passes between the holder's shop and its lock servers")
		after := answering(parted, s.Times.Lease/4)
		if before < len(parted) || after > 0 {
			return "", missed("%d of %d lock servers answered before the partition and %d through it", before, len(parted), after)
		}
		s.next(ctx, s.Times.reach())
		err := s.release()
		s.pending.Wait() // the holder's release has failed, too
		return fmt.Sprintf("the holder reported that it has read; its way to %d lock servers let no question through from then on, and had before", len(parted)), err
	}}
}

// answering counts the links through which a server answers within patience;
// they are all asked at once.
func answering(links []*link, patience time.Duration) int {
	var (
		all sync.WaitGroup
		n   atomic.Int64
	)
	for _, l := range links {
		all.Go(func() {
			if _, err := l.roundTrip(patience); err == nil {
				n.Add(1)
			}
		})
	}
	all.Wait()
	return int(n.Load())
}
