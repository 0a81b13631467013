package rush

import (
	"context"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/verdict"
)

// books are stock and records as a test gives them.
type books struct {
	report audit.Report
	sales  map[int64]audit.Sale
}

func (b books) Audit(context.Context, string) (audit.Report, error) { return b.report, nil }

func (b books) Sales(context.Context, string) (map[int64]audit.Sale, error) { return b.sales, nil }

// buy is an answer to one unit, in milliseconds since the start of the crowd.
func buy(purchaser string, outcome purchase.Outcome, id, from, to int64) Answer {
	return Answer{Answer: audit.Answer{
		Purchaser: purchaser, Units: 1, Outcome: outcome, ID: id, Start: time.UnixMilli(from), End: time.UnixMilli(to),
	}}
}

// TestJudgedVisits: who waited in vain and was served when it asked again has waited for
// a lock that was kept, and what a purchase takes is not what a receipt takes.
func TestJudgedVisits(t *testing.T) {
	answers := []Answer{
		buy("a", purchase.Sold, 1, 0, 4), buy("b", purchase.Sold, 2, 0, 8), buy("c", purchase.SoldOut, 0, 5100, 5101),
	}
	c := Config{
		Stock: 2, Lease: 2 * time.Second, Wait: 5 * time.Second,
		Auditor: books{audit.Report{Stocked: 2, Records: 2, UnitsSold: 2}, map[int64]audit.Sale{1: {Purchaser: "a", Amount: 1}, 2: {Purchaser: "b", Amount: 1}}},
	}
	waited := append([]Answer{buy("c", purchase.Busy, 0, 0, 5000)}, answers...)
	for _, again := range []int64{5100, 5100, 5100} {
		waited = append(waited, buy("a", purchase.Sold, 1, again, again))
	}
	for _, x := range []struct {
		name   string
		visits []Answer
		want   verdict.Verdict
	}{
		{"only what counts in the end", answers, verdict.Holds},
		{"all visits", waited, verdict.Stalled},
	} {
		r, err := c.judged(t.Context(), answers, x.visits, time.Millisecond, 2)
		if err != nil || r.Verdict != x.want {
			t.Errorf("%s: %s (%s), %v; want %s", x.name, r.Verdict, r.Reason, err, x.want)
		}
	}
	if p := ProgressOf(waited, answers, 0, c.Lease, c.Wait); p.Usual != 4*time.Millisecond {
		t.Errorf("a purchase takes %s, want 4 ms", p.Usual)
	}
}
