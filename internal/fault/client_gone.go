package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
)

// impatient is how many buyers hang up at a moment of their own.
const impatient = 30

// clientGone lets buyers hang up in the middle of their buys: one that certainly
// holds, and others wherever they happen to be.
func clientGone() Fault {
	return Fault{Name: promise.ClientGone, Stock: 2 * stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		buyer, hangUp := context.WithCancel(ctx)
		defer hangUp()
		if err := s.hold(buyer, failpoint.Read, s.Times.Wait); err != nil {
			return "", err
		}
		hangUp()
		answered, gone := s.seen(ctx, s.Times.Wait, holder, history.Answered)
		s.struck("the holder's buyer hung up")
		if err := s.release(); err != nil {
			return "", err
		}
		if !gone || answered.Outcome != string(purchase.Unknown) {
			return "", missed("the holder's buyer had its answer already")
		}
		if _, ok := s.seen(ctx, s.Times.Wait, holder, history.Return); !ok {
			return "", missed("the shop did not come back from the holder's buy")
		}
		var left atomic.Int64
		for i := range impatient {
			patience := time.Duration(1+rand.IntN(30)) * time.Millisecond
			s.pending.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				a := s.buy(ctx, []*Shop{s.A, s.B}[i%2], fmt.Sprintf("impatient-%02d", i))
				if ctx.Err() != nil && a.Outcome == purchase.Unknown {
					left.Add(1)
				}
			})
		}
		s.pending.Wait()
		return fmt.Sprintf("the holder's buyer hung up between its read and its write, and %d of %d others before they had their answer", left.Load(), impatient), nil
	}}
}
