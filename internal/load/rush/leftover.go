package rush

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/measure"
	"github.com/oversell/oversell/internal/purchase"
)

// Silence is how long a buyer of our shop waits for an answer after its maximum wait in the shop is over.
const Silence = 15 * time.Second

// A lockAuditor is an Auditor that can also find row locks.
type lockAuditor interface {
	Held(ctx context.Context, product string) (what string, err error)
}

// A leftover finds locks and running purchases that a burst left behind in the service.
type leftover struct {
	urls    []string
	auditor Auditor
	product string
	wait    time.Duration // maximum wait of a buyer inside the service; 0: unknown
}

// judge looks for a transaction that still locks the stock, and for a purchase that does not return. Either
// would make the next restock fail, and that would look like a failure of the test itself. Call judge after
// all buyers were answered or have given up.
func (l leftover) judge(ctx context.Context, answers []buyers.Answer, r *Result) error {
	if r.Verdict.IsBreak() && r.Verdict != verdict.Stalled && r.Verdict != verdict.Failed {
		return nil
	}
	if l.wait > 0 && isSilent(answers) {
		if n := l.stillInside(ctx); n > 0 {
			r.neverReturns = true
			r.Verdict = verdict.Stalled
			r.Reason = fmt.Sprintf("%d buys are inside the strategy more than %s after their wait was over: Buy does not return", n, Silence)
			return nil
		}
	}
	auditor, seesLocks := l.auditor.(lockAuditor)
	if !seesLocks {
		return nil
	}
	held, err := auditor.Held(ctx, l.product)
	if err != nil {
		return fmt.Errorf("lock the stock after the rush: %w", err)
	}
	if held != "" {
		r.Verdict, r.Reason = verdict.LeakedLock, held
	}
	return nil
}

func isSilent(answers []buyers.Answer) bool {
	return slices.ContainsFunc(answers, func(a buyers.Answer) bool { return a.Outcome == purchase.Unknown && a.Status == 0 })
}

// stillInside returns the number of purchases in flight, according to a metric of each process. It waits up to
// two seconds for each process. A process without the metric counts as 0.
func (l leftover) stillInside(ctx context.Context) (n int) {
	for _, url := range l.urls {
		for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			inside := int(measure.Metric(measure.Metrics(ctx, url), "shop_buys_in_flight"))
			if inside == 0 {
				break
			}
			if time.Now().After(deadline) || ctx.Err() != nil {
				n += inside
				break
			}
		}
	}
	return n
}
