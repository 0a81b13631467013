package lockstrategytest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// crowd sends all buyers at once, spread over the given instances of a strategy, and counts the outcomes.
// The buyers order the amounts in `sizes` in turn.
func crowd(tb testing.TB, shops []purchase.Strategy, name string, buyers int, sizes []int64) map[purchase.Outcome]int64 {
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
			_, err := shops[i%len(shops)].Buy(tb.Context(), order(name, i, sizes[i%len(sizes)]))
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

// rush sends a burst of buyers and judges the result as `shop rush` does. The buyers order the amounts in
// `sizes` in turn. With several amounts, units may remain; rush then sells these one by one.
func rush(tb testing.TB, w *world, instances int, sizes ...int64) {
	const buyers, stocked = 60, 23
	var shops []purchase.Strategy
	inside := &holders{}
	for range instances {
		shops = append(shops, w.instance(crowdWait, inside.observe))
	}
	w.stock(tb, "apple", stocked)
	count := crowd(tb, shops, "apple", buyers, sizes)
	w.settle(tb, "apple")
	denied := count[purchase.SoldOut]
	if len(sizes) > 1 { // a refusal may be right, or come from a counter that was too low for a moment (Traits.AdmitsFirst)
		denied = w.sellRest(tb, shops[0], stocked, count)
	}
	report := w.audited(tb, "apple")
	got, why := audit.Judge(audit.Evidence{
		Sums: report, Demand: buyers * slices.Max(sizes), MaxOverlap: buyers, Lost: max(0, count[purchase.Sold]-report.Records),
		SoldOut: count[purchase.SoldOut], Denied: denied, Busy: count[purchase.Busy], Unanswered: count[purchase.Unknown] + count[purchase.Failed],
	})
	expect.Equal(tb, report.Records, count[purchase.Sold], "records of acknowledged sales")
	if got != verdict.Holds {
		tb.Errorf("verdict %s (%s), %v", got, why, count)
	}
	if most := inside.most(); most > 1 && got == verdict.Holds {
		tb.Errorf("%d holders at once", most)
	}
}

// sellRest sells single units until a buyer is refused. The parameter `most` limits the number of buyers.
// sellRest adds the answers to `count`, and returns the number of refusals: 0 or 1.
func (w *world) sellRest(tb testing.TB, shop purchase.Strategy, most int, count map[purchase.Outcome]int64) (denied int64) {
	tb.Helper()
	for i := range most {
		_, err := shop.Buy(tb.Context(), order("apple", 1000+i, 1))
		count[purchase.OutcomeOf(err)]++
		if err != nil {
			return 1
		}
	}
	return 0
}

// holders counts the buyers inside the critical section by their lock events.
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
