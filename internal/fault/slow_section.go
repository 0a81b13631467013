package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// slowSection keeps the holder between its read and its write for longer than its
// lease, while the process runs on: a watchdog can renew, and a lease that knows its
// end can end the section.
//
// The second buyer is stopped, too, well within its own lease, until the holder has
// released and a third buyer has tried: a release that does not check whose lock it
// frees lets the third one in.
func slowSection() Fault {
	return Fault{
		Name: "slow-section", About: "the section outlives the lease, and the process runs on", Stock: stock,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			if err := t.hold(ctx, failpoint.Read, t.Times.Wait); err != nil {
				return "", err
			}
			t.struck("the holder's section takes longer than its lease")
			start := time.Now()
			const second = "second"
			if err := t.B.arm(second, failpoint.Read); err != nil {
				return "", err
			}
			t.seen(ctx, t.Times.Wait, second, history.Armed)
			t.buyers.send(ctx, t.B, second)
			timeout := t.Times.Reach()
			if !locks(t.Log) {
				timeout = time.Second
			}
			t.seen(ctx, timeout, second, history.Holding) // or not: the lock held
			took := time.Since(start)
			if err := t.release(); err != nil {
				return "", err
			}
			t.seen(ctx, t.Times.Lease/4, holder, history.Return)
			t.buyers.send(ctx, t.A, "third")
			waiting, cancel := context.WithTimeout(ctx, t.Times.Lease/4)
			defer cancel()
			t.Log.Wait(waiting, func(e history.Event) bool { return e.Purchaser == "third" && e.Outcome == string(purchase.Sold) })
			proof := fmt.Sprintf("the holder reported that it has read and not written, and stood there for %.1f s", took.Seconds())
			return proof, t.B.release(second)
		},
	}
}
