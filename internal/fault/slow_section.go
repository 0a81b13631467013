package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// slowSection keeps the holder between its read and its write for longer than its lease, while the
// process runs on. A watchdog can renew the lease, and a lease that knows its end can abort the
// section.
func slowSection() Fault {
	return Fault{
		Name: "slow-section", About: "the critical section outlasts the lease while the process runs on", Stock: stock,
		Inject: outlastLease,
	}
}

// outlastLease also stops the second buyer, well within its own lease, until the holder has
// released and a third buyer has tried. A release that does not check the owner of the lock lets
// the third buyer in.
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
	seen(ctx, t, timeout, second, history.Holding) // an error means that it holds the lock
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
