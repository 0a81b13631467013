package lockstrategytest

import (
	"context"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// crowd lets all buyers buy at once, spread over the instances, and counts
// the outcomes.
func crowd(tb testing.TB, shops []purchase.Strategy, name string, buyers int, units int64) map[purchase.Outcome]int64 {
	tb.Helper()
	var (
		start = make(chan struct{})
		all   sync.WaitGroup
		mu    sync.Mutex
		count = map[purchase.Outcome]int64{}
	)
	for i := range buyers {
		all.Go(func() {
			<-start
			_, err := shops[i%len(shops)].Buy(tb.Context(), order(name, i, units))
			mu.Lock()
			defer mu.Unlock()
			count[purchase.OutcomeOf(err)]++
			if purchase.OutcomeOf(err) == purchase.Failed {
				tb.Errorf("buyer %d: %v", i, err)
			}
		})
	}
	close(start)
	all.Wait()
	return count
}

// rush judges as `shop rush` does.
func rush(tb testing.TB, w *world, instances int) {
	const stocked, buyers = 20, 60
	var shops []purchase.Strategy
	inside := &holders{}
	for range instances {
		shops = append(shops, w.instance(crowdWait, inside.observe))
	}
	w.stock(tb, "apple", stocked)
	count := crowd(tb, shops, "apple", buyers, 1)
	report := w.audited(tb, "apple")
	got, why := audit.Judge(audit.Evidence{
		Report: report, Demand: buyers, MaxOverlap: buyers, Lost: max(0, count[purchase.Sold]-report.Records),
		SoldOut: count[purchase.SoldOut], Denied: count[purchase.SoldOut], Busy: count[purchase.Busy], Unanswered: count[purchase.Unknown] + count[purchase.Failed],
	})
	if report.Records != count[purchase.Sold] {
		tb.Errorf("%d records, %d acknowledged", report.Records, count[purchase.Sold])
	}
	if got != verdict.Holds {
		tb.Errorf("verdict %s (%s), %v", got, why, count)
	}
	if most := inside.most(); most > 1 && got == verdict.Holds {
		tb.Errorf("%d holders at once", most)
	}
}

// holders counts the buyers inside the section, by their lock events.
type holders struct {
	mu            sync.Mutex
	now, mostEver int
}

func (h *holders) observe(_ context.Context, e lockstrategy.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case lockstrategy.Acquired:
		h.now++
		h.mostEver = max(h.mostEver, h.now)
	case lockstrategy.Released:
		h.now--
	}
}

func (h *holders) most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mostEver
}
