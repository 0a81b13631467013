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

const (
	// impatient is the number of buyers in a cell that hang up, each at a random moment.
	impatient = 30
	// In a rush, every third waiting buyer hangs up.
	everyNth = 3
)

// clientGone makes buyers hang up during their buys. In a cell, one of them certainly holds the
// lock, and the others hang up at random moments. In a running rush, a third of the waiting buyers
// hang up while one buyer is held.
func clientGone() Fault {
	return Fault{
		Name: "client-gone", About: "the buyer hangs up between its read and its write", Stock: 2 * stock, HolderLives: true,
		AboutRush: "a third of the buyers that wait hang up while one of them is about to write",
		Inject:    either(clientGoneInCell, clientGoneInRush),
	}
}

func clientGoneInCell(ctx context.Context, t *Testbed) (string, error) {
	buyer, hangUp := context.WithCancel(ctx)
	defer hangUp()
	if _, err := t.hold(buyer, failpoint.Read); err != nil {
		return "", err
	}
	hangUp()
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

func clientGoneInRush(ctx context.Context, r *RunningRush) (string, error) {
	if _, err := r.hold(ctx, r.write); err != nil {
		return "", err
	}
	left := r.HangUp(everyNth)
	if left == 0 {
		return "", missed("no buyer was waiting for an answer")
	}
	return fmt.Sprintf("while a buyer of process 1 was stopped before its write, %d buyers closed their connections before they got an answer", left), nil
}
