package rush

import (
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// TestReceipts: rush judges left and waited_ms of the receipts when stock and records are right.
func TestReceipts(t *testing.T) {
	sold := func(purchaser string, id, from, to int64, receipt string) buyers.Answer {
		a := buy(purchaser, purchase.Sold, id, from, to)
		a.Receipt = receipt
		return a
	}
	refused := buy("c", purchase.SoldOut, 0, 0, 50)
	two := func(a, b string) []buyers.Answer { // a is answered before b asks
		return []buyers.Answer{sold("a", 1, 0, 10, a), sold("b", 2, 20, 30, b), refused}
	}
	six, seven := int64(6), int64(7)
	for _, c := range []struct {
		name    string
		counts  linear.Counts
		record  audit.Sale // of a; nil members are absent
		answers []buyers.Answer
		want    verdict.Verdict
		says    string
	}{
		{"right", linear.Exactly, audit.Sale{}, two(`{"left":1,"waited_ms":10}`, `{"left":0,"waited_ms":0}`), verdict.Holds, "2 units sold"},
		{"no such members", linear.Exactly, audit.Sale{}, two(`{}`, ``), verdict.Holds, "2 units sold"},
		{"members of other types", linear.Exactly, audit.Sale{}, two(`{"left":"few","waited_ms":"long"}`, `{"left":0.5}`), verdict.Holds, "2 units sold"},
		{"below zero", linear.Unspecified, audit.Sale{}, two(`{"left":1}`, `{"left":-1}`), verdict.Failed, "1 receipts cannot be true: b was answered that -1 units are left"},
		{"more than the stock", linear.Unspecified, audit.Sale{}, two(`{"left":3}`, `{"left":0}`), verdict.Failed, "a was answered that 3 units are left of 2 stocked"},
		{"before the sale", linear.Exactly, audit.Sale{}, two(`{"left":2}`, `{"left":1}`), verdict.Failed, "a was answered that 2 units are left"},
		{"before the sale, at a target", linear.Unspecified, audit.Sale{}, two(`{"left":2}`, `{"left":1}`), verdict.Holds, "2 units sold"},
		{"the wrong way round", linear.Exactly, audit.Sale{}, two(`{"left":0}`, `{"left":1}`), verdict.Nonlinearizable, "no order of the buys explains"},
		{"the same for both", linear.Exactly, audit.Sale{}, two(`{"left":0}`, `{"left":0}`), verdict.Nonlinearizable, "no order of the buys explains"},
		{"the same for both, from a counter that admits first", linear.Admits, audit.Sale{}, two(`{"left":0}`, `{"left":0}`), verdict.Holds, "2 units sold"},
		{"waited longer than the request took", linear.Exactly, audit.Sale{}, two(`{"left":1,"waited_ms":4000}`, `{"left":0}`), verdict.Failed, "a was answered that it waited for 4000 ms, but the request took 10 ms"},
		{"a negative wait", linear.Exactly, audit.Sale{}, two(`{"left":1,"waited_ms":-1}`, `{"left":0}`), verdict.Failed, "waited for -1 ms"},
		{"another number in the record", linear.Exactly, audit.Sale{Left: &six}, two(`{"left":1}`, `{"left":0}`), verdict.Failed, "1 units are left, but the record says 6"},
		{"another wait in the record", linear.Exactly, audit.Sale{WaitedMS: &seven}, two(`{"left":1,"waited_ms":2}`, `{"left":0}`), verdict.Failed, "2 ms, but the record says 7 ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.record.Purchaser, c.record.Amount = "a", 1
			config := Config{
				Stock: 2, Lease: 2 * time.Second, Wait: 5 * time.Second, Counts: c.counts,
				Auditor: books{audit.Sums{Stocked: 2, Records: 2, UnitsSold: 2}, map[int64]audit.Sale{1: c.record, 2: {Purchaser: "b", Amount: 1}}},
			}
			r, err := config.judged(t.Context(), c.answers, c.answers, time.Millisecond, 2)
			if err != nil || r.Verdict != c.want || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), %v; want %s (%s)", r.Verdict, r.Reason, err, c.want, c.says)
			}
			config.isKeyed = true
			if r, err := config.judged(t.Context(), c.answers, c.answers, time.Millisecond, 2); err != nil || r.Verdict != verdict.Holds {
				t.Errorf("orders that are repeated: %s (%s), %v", r.Verdict, r.Reason, err)
			}
		})
	}
}
