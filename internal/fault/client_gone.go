package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// impatient is how many buyers hang up, each at a random moment.
const impatient = 30

// clientGone lets buyers hang up in the middle of their buys: one that certainly
// holds the lock, and others wherever they happen to be.
func clientGone() Fault {
	return Fault{
		Name: "client-gone", About: "the buyer hangs up in the middle of its buy", Stock: 2 * stock, HolderLives: true,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			buyer, hangUp := context.WithCancel(ctx)
			defer hangUp()
			if err := t.hold(buyer, failpoint.Read, t.Times.Wait); err != nil {
				return "", err
			}
			hangUp()
			answered, gone := t.seen(ctx, t.Times.Wait, holder, history.Answered)
			t.struck("the holder's buyer hung up")
			if err := t.release(); err != nil {
				return "", err
			}
			if !gone || answered.Outcome != string(purchase.Unknown) {
				return "", missed("the holder's buyer had its answer already")
			}
			if _, ok := t.seen(ctx, t.Times.Wait, holder, history.Return); !ok {
				return "", missed("the shop did not come back from the holder's buy")
			}
			var left atomic.Int64
			for i := range impatient {
				timeout := time.Duration(1+rand.IntN(30)) * time.Millisecond
				t.buyers.pending.Go(func() {
					ctx, cancel := context.WithTimeout(ctx, timeout)
					defer cancel()
					a := t.buyers.buy(ctx, t.shops()[i%2], fmt.Sprintf("impatient-%02d", i))
					if ctx.Err() != nil && a.Outcome == purchase.Unknown {
						left.Add(1)
					}
				})
			}
			t.buyers.wait()
			return fmt.Sprintf("the holder's buyer hung up between its read and its write, and %d of %d others before they had their answer", left.Load(), impatient), nil
		},
	}
}
