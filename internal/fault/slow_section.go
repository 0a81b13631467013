package fault

import (
	"context"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// slowSection keeps the holder between its read and its write for longer than
// its lease, while the process runs on: a watchdog can renew, and a lease that
// knows its end can end the section.
func slowSection() Fault {
	return Fault{Name: lockstrategy.SlowSection, Strikes: everybody, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		if err := s.hold(ctx, failpoint.Read, s.Times.Wait); err != nil {
			return "", err
		}
		s.struck("the holder's section takes longer than its lease")
		s.next(ctx)
		return "the holder reported that it has read and not written", s.release()
	}}
}
