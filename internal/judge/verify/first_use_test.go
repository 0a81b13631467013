package verify

import (
	"context"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// oneSale audits a product with one unit, which the buyer a has bought.
type oneSale struct{}

func (oneSale) Audit(context.Context, string) (audit.Report, error) {
	return audit.Report{Stocked: 1, Records: 1, UnitsSold: 1}, nil
}

func (oneSale) Sales(context.Context, string) (map[int64]audit.Sale, error) {
	return map[int64]audit.Sale{1: {Purchaser: "a", Amount: 1}}, nil
}

// TestFirstUse: buyers that were sent at once but admitted one after the other prove nothing.
// Buyers that were inside at once do.
func TestFirstUse(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	buy := func(who string, outcome purchase.Outcome, id, from, to int64) buyers.Answer {
		return buyers.Answer{
			Answer: audit.Answer{Purchaser: who, Outcome: outcome, ID: id, Start: at(0), End: at(100)},
			Inside: [2]time.Time{at(from), at(to)},
		}
	}
	sold := buy("a", purchase.Sold, 1, 10, 20)
	for _, c := range []struct {
		name    string
		refused buyers.Answer
		want    verdict.Verdict
		overlap int
	}{
		{"one after the other", buy("b", purchase.SoldOut, 0, 30, 40), verdict.Inconclusive, 1},
		{"at once", buy("b", purchase.SoldOut, 0, 15, 40), verdict.Holds, 2},
	} {
		f, cell := FirstUse{Auditor: oneSale{}}, Cell{}
		err := f.judge(t.Context(), "new", []buyers.Answer{sold, c.refused}, &cell)
		if err != nil || cell.Verdict != c.want || f.overlap != c.overlap {
			t.Errorf("%s: %s (%s), overlap %d, %v; want %s, overlap %d", c.name, cell.Verdict, cell.Reason, f.overlap, err, c.want, c.overlap)
		}
	}
}
