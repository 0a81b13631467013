package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// partition parts the holder's shop from its lock servers, and not from the
// database, while the holder is between its read and its write: its lease runs
// out where it cannot see it.
func partition() Fault {
	return Fault{Name: lockstrategy.Partition, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
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
		for _, l := range parted {
			if err := l.silence(); err != nil {
				return "", err
			}
		}
		s.struck("nothing passes between the holder's shop and its lock servers")
		for _, l := range parted {
			if _, err := l.roundTrip(50 * time.Millisecond); err == nil {
				return "", missed("a lock server answers through the partition")
			}
		}
		s.next(ctx, s.Times.reach())
		err := s.release()
		s.pending.Wait() // the holder's release has failed, too
		return "the holder reported that it has read; no lock server answered its shop until it had ended", err
	}}
}
