package rush

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// market sells units of several products. Each flag is a bug.
type market struct {
	byOne     bool // every order takes one unit
	mixed     bool // the units of an order are taken from the first product
	remembers bool // once it is sold out, it never sells again
	keeps     bool // a restock adds to the units that are left
	oversells bool // every order is sold

	mu      sync.Mutex
	soldOut bool                // whether the market has ever been sold out
	stock   map[string][2]int64 // left and stocked
	first   string
	sales   []map[string]any
	sold    int64
}

func (m *market) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	query := r.URL.Query()
	name := query.Get("product")
	switch {
	case r.Method == http.MethodPut:
		var body struct{ Amount int64 }
		_ = json.NewDecoder(r.Body).Decode(&body)
		name = strings.TrimPrefix(r.URL.Path, "/product/")
		if m.stock == nil {
			m.stock, m.first = map[string][2]int64{}, name
		}
		left := int64(0)
		if m.keeps {
			left = m.stock[name][0]
		}
		m.stock[name] = [2]int64{left + body.Amount, body.Amount}
		m.sales = slices.DeleteFunc(m.sales, func(s map[string]any) bool { return s["product"] == name })
	case r.URL.Path == "/audit":
		var records, units int64
		for _, s := range m.sales {
			if s["product"] == name {
				records, units = records+1, units+s["amount"].(int64)
			}
		}
		fmt.Fprintf(w, `{"stocked":%d,"leftover":%d,"records":%d,"units_sold":%d}`, m.stock[name][1], m.stock[name][0], records, units)
	case r.URL.Path == "/purchase_history":
		var of []map[string]any
		for _, s := range m.sales {
			if s["product"] == name {
				of = append(of, s)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"records": of})
	case r.URL.Path == "/product/buy":
		time.Sleep(100 * time.Microsecond) // other buyers come meanwhile
		m.buy(w, name, query.Get("purchaser"), query.Get("amount"))
	}
}

func (m *market) buy(w http.ResponseWriter, name, purchaser, amount string) {
	units, err := strconv.ParseInt(amount, 10, 64)
	if err != nil {
		units = 1
	}
	from, taken := name, units
	if m.mixed {
		from = m.first
	}
	if m.byOne {
		taken = 1
	}
	left := m.stock[from]
	if left[0] < taken && !m.oversells || m.remembers && m.soldOut {
		m.soldOut = true
		w.WriteHeader(http.StatusConflict)
		return
	}
	m.stock[from] = [2]int64{left[0] - taken, left[1]}
	m.sold++
	sale := map[string]any{"id": m.sold, "product": name, "purchaser": purchaser, "amount": units}
	m.sales = append(m.sales, sale)
	_ = json.NewEncoder(w).Encode(sale)
}

// rushAt is a rush of 200 buyers for 100 units at a service of one process.
func rushAt(t *testing.T, shop http.Handler) Config {
	t.Helper()
	server := httptest.NewServer(shop)
	t.Cleanup(server.Close)
	target := Target{BaseURL: server.URL}
	return Config{
		BaseURLs: []string{server.URL}, Shelf: target, Auditor: target, Strategy: "mine", Product: "apple",
		Stock: 100, Buyers: 200, Timeout: 20 * time.Second, Progress: func(int) {},
	}
}

// TestCrowds sends a burst with mixed order sizes, and a burst for two products, to a correct service and to
// two broken ones.
func TestCrowds(t *testing.T) {
	for _, c := range []struct {
		name     string
		shop     *market
		sizes    []int64
		products []string
		want     verdict.Verdict
		reason   string
		sold     int64
	}{
		{"units", &market{}, []int64{1, 2, 3}, nil, verdict.Holds, "25 units sold of 25", 0},
		{"units taken one by one", &market{byOne: true}, []int64{1, 2, 3}, nil, verdict.Oversold, "units sold of 25", 25},
		{"the same with one unit each", &market{byOne: true}, nil, nil, verdict.Holds, "25 units sold of 25", 25},
		{"two products", &market{}, nil, []string{"apple", "pear"}, verdict.Holds, "25 units of 2 products sold of 25", 25},
		{"two products mixed up", &market{mixed: true}, nil, []string{"apple", "pear"}, verdict.Leaked, `product "apple": `, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := rushAt(t, c.shop)
			config.Stock, config.Buyers, config.Sizes = 25, 45, c.sizes
			r, err := Run(t.Context(), config)
			if c.products != nil {
				r, err = RunProducts(t.Context(), config, c.products, []int64{15, 10})
			}
			if err != nil || !c.want.Keeps(r.Verdict) || !strings.Contains(r.Reason, c.reason) {
				t.Fatalf("%s, %s, %v; want %s with %q", r.Verdict, r.Reason, err, c.want, c.reason)
			}
			if c.sold > 0 && r.Sold != c.sold {
				t.Errorf("%d sold, want %d", r.Sold, c.sold)
			}
		})
	}
}

// books contains the stock and the records of a test.
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
	expect.Equal(t, ProgressOf(waited, answers, 0, c.Lease, c.Wait, nil).Usual, 4*time.Millisecond, "a purchase")
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

	// Three buyers ask for three units. The buyer after the burst is the fourth.
	c.Stock, c.Auditor = 3, books{audit.Sums{Stocked: 3, Records: 3, UnitsSold: 3}, map[int64]audit.Sale{
		1: {Purchaser: "a", Amount: 1}, 2: {Purchaser: "b", Amount: 1}, 3: {Purchaser: "d", Amount: 1},
	}}
	if r, err = c.judged(t.Context(), crowd, crowd, time.Millisecond, 2); err != nil || r.Verdict != verdict.Inconclusive || !strings.HasPrefix(r.Reason, "3 units asked for, 3 stocked") {
		t.Errorf("as many as units: %s (%s), %v; want inconclusive", r.Verdict, r.Reason, err)
	}
}

// TestReceipts: rush judges "left" and "waited_ms" of the receipts when stock and records are right.
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
		record  audit.Sale // record of the sale to a; nil members are absent
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
