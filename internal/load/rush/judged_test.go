package rush

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// books has the stock and the records of a test.
type books struct {
	report audit.Sums
	sales  map[int64]audit.Sale
}

func (b books) Audit(context.Context, string) (audit.Sums, error) { return b.report, nil }

func (b books) Sales(context.Context, string) (map[int64]audit.Sale, error) { return b.sales, nil }

// buy returns the answer to a buy of one unit, with times in milliseconds since the start.
func buy(purchaser string, outcome purchase.Outcome, id, from, to int64) buyers.Answer {
	return buyers.Answer{Answer: audit.Answer{
		Purchaser: purchaser, Units: 1, Outcome: outcome, ID: id, Start: time.UnixMilli(from), End: time.UnixMilli(to),
	}}
}

// TestJudgedVisits: a buyer that gave up and was served later has waited for a lock that was kept.
// Repeated requests do not count for the usual time of a purchase.
func TestJudgedVisits(t *testing.T) {
	answers := []buyers.Answer{
		buy("a", purchase.Sold, 1, 0, 4), buy("b", purchase.Sold, 2, 0, 8), buy("c", purchase.SoldOut, 0, 5100, 5101),
	}
	c := Config{
		Stock: 2, Lease: 2 * time.Second, Wait: 5 * time.Second,
		Auditor: books{audit.Sums{Stocked: 2, Records: 2, UnitsSold: 2}, map[int64]audit.Sale{1: {Purchaser: "a", Amount: 1}, 2: {Purchaser: "b", Amount: 1}}},
	}
	waited := append([]buyers.Answer{buy("c", purchase.Busy, 0, 0, 5000)}, answers...)
	for _, again := range []int64{5100, 5100, 5100} {
		waited = append(waited, buy("a", purchase.Sold, 1, again, again))
	}
	for _, x := range []struct {
		name   string
		visits []buyers.Answer
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
	if p := ProgressOf(waited, answers, 0, c.Lease, c.Wait, nil); p.Usual != 4*time.Millisecond {
		t.Errorf("a purchase takes %s, want 4 ms", p.Usual)
	}
}

// TestJudgedLate: a buyer after the burst counts for stock and records, but not for the demand and the
// times of the burst.
func TestJudgedLate(t *testing.T) {
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) }))
	defer late.Close()
	c := Config{
		BaseURLs: []string{late.URL}, Timeout: 20 * time.Second,
		Stock: 2, Lease: 2 * time.Second, Wait: 5 * time.Second,
		Auditor: books{audit.Sums{Stocked: 2, Records: 2, UnitsSold: 2}, map[int64]audit.Sale{1: {Purchaser: "a", Amount: 1}, 2: {Purchaser: "b", Amount: 1}}},
	}
	crowd := []buyers.Answer{buy("a", purchase.Sold, 1, 0, 4), buy("b", purchase.Sold, 2, 0, 8), buy("c", purchase.Busy, 0, 0, 8)}
	r, err := c.judged(t.Context(), crowd, crowd, time.Millisecond, 2)
	if err != nil || r.Crowd != 3 || r.SoldOut != 1 || r.DurationMS != 8 || r.P99MS != 8 || r.PerSecond != 250 {
		t.Errorf("%+v, %v; want a crowd of 3 in 8 ms, one more told sold out, 250 sales a second", r, err)
	}
	all := together(Config{Strategy: "any", Products: []string{"apple"}}, crowd, []Result{r})
	if all.Outcomes != r.Outcomes || all.DurationMS != 8 || all.PerSecond != 250 || all.MaxOverlap != 2 {
		t.Errorf("of several products: %+v, want the figures of %+v", all, r)
	}

	// Three ask for three units; the late one is the fourth.
	c.Stock, c.Auditor = 3, books{audit.Sums{Stocked: 3, Records: 3, UnitsSold: 3}, map[int64]audit.Sale{
		1: {Purchaser: "a", Amount: 1}, 2: {Purchaser: "b", Amount: 1}, 3: {Purchaser: "d", Amount: 1},
	}}
	if r, err = c.judged(t.Context(), crowd, crowd, time.Millisecond, 2); err != nil || r.Verdict != verdict.Inconclusive || !strings.HasPrefix(r.Reason, "3 units asked for, 3 stocked") {
		t.Errorf("as many as units: %s (%s), %v; want inconclusive", r.Verdict, r.Reason, err)
	}
}
