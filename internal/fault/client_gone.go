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

// impatient is the number of buyers that hang up, each at a random moment.
const impatient = 30

// clientGone makes buyers hang up before the shop has answered. One of them certainly holds the lock at that
// moment. The others hang up at random moments.
func clientGone() Fault {
	return Fault{
		Name: "client-gone", About: "the buyer hangs up between its read and its write", Stock: 2 * stock, HolderLives: true,
		Inject: hangUp,
	}
}

func hangUp(ctx context.Context, t *Testbed) (string, error) {
	buyer, leave := context.WithCancel(ctx)
	defer leave()
	if _, err := t.hold(buyer, failpoint.Read); err != nil {
		return "", err
	}
	leave()
	answered, gone := seen(ctx, t, t.Times.Wait, holder, history.Answered)
	t.injected("the holder's buyer hung up")
	if err := t.release(); err != nil {
		return "", err
	}
	if !gone || answered.Outcome != string(purchase.Unknown) {
		return "", missed("the holder's buyer had its answer already")
	}
	if _, ok := seen(ctx, t, t.Times.Wait, holder, history.Return); !ok {
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
}
