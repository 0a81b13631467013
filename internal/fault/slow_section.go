package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
)

// slowSection keeps the holder between its read and its write for longer than
// its lease, while the process runs on: a watchdog can renew, and a lease that
// knows its end can end the section.
//
// Who came next is stopped, too, well within its own lease, until the first one
// has released and a third has tried: a release that does not look whose lock it
// frees lets the third one in.
func slowSection() Fault {
	return Fault{Name: promise.SlowSection, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		if err := s.hold(ctx, failpoint.Read, s.Times.Wait); err != nil {
			return "", err
		}
		s.struck("the holder's section takes longer than its lease")
		start := time.Now()
		const second = "second"
		if err := s.B.arm(second, failpoint.Read); err != nil {
			return "", err
		}
		s.seen(ctx, s.Times.Wait, second, history.Armed)
		s.send(ctx, s.B, second)
		patience := s.Times.reach()
		if !s.locks() {
			patience = time.Second
		}
		s.seen(ctx, patience, second, history.Holding) // or not: the lock held
		took := time.Since(start)
		if err := s.release(); err != nil {
			return "", err
		}
		s.seen(ctx, s.Times.Lease/4, holder, history.Return)
		s.send(ctx, s.A, "third")
		waiting, cancel := context.WithTimeout(ctx, s.Times.Lease/4)
		defer cancel()
		s.Log.Wait(waiting, func(e history.Event) bool { return e.Purchaser == "third" && e.Outcome == string(purchase.Sold) })
		proof := fmt.Sprintf("the holder reported that it has read and not written, and stood there for %.1f s", took.Seconds())
		return proof, s.B.release(second)
	}}
}
