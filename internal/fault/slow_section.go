package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// slowSection keeps the holder, a buyer with the lock, between its read and its write for longer than its lease.
// The process keeps running, so a watchdog may renew the lease, or the strategy may end the section with the lease.
func slowSection() Fault {
	return Fault{
		Name: "slow-section", About: "the critical section outlasts the lease while the process runs on", Stock: stock,
		Inject: outlastLease,
	}
}

// outlastLease is the fault with two more buyers. It stops the second buyer for less than that buyer's lease.
// Meanwhile the holder releases the lock, and a third buyer tries to get it. A faulty release that does not
// check the lock's owner frees the second buyer's lock and lets the third buyer in.
func outlastLease(ctx context.Context, t *Testbed) (string, error) {
	if _, err := t.hold(ctx, failpoint.Read); err != nil {
		return "", err
	}
	t.injected("the holder's section takes longer than its lease")
	start := time.Now()
	const second = "second"
	if err := t.B.arm(second, failpoint.Read); err != nil {
		return "", err
	}
	seen(ctx, t, t.Times.Wait, second, history.Armed)
	t.buyers.send(ctx, t.B, second)
	timeout := t.Times.Reach()
	if !locks(t.Log) {
		timeout = time.Second
	}
	seen(ctx, t, timeout, second, history.Holding) // not seen if the lock keeps the second buyer out
	took := time.Since(start)
	if err := t.release(); err != nil {
		return "", err
	}
	seen(ctx, t, t.Times.Lease/4, holder, history.Return)
	t.buyers.send(ctx, t.A, "third")
	waiting, cancel := context.WithTimeout(ctx, t.Times.Lease/4)
	defer cancel()
	t.Log.Wait(waiting, func(e history.Event) bool { return e.Purchaser == "third" && e.Outcome == string(purchase.Sold) })
	proof := fmt.Sprintf("the holder reported that it has read and not written, and stood there for %.1f s", took.Seconds())
	return proof, t.B.release(second)
}
