package rush

import (
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

	"github.com/oversell/oversell/internal/judge/verdict"
)

// market sells several products by units. Each flag is a bug.
type market struct {
	byOne     bool // every order takes one unit
	mixed     bool // the units of an order are taken from the first product
	remembers bool // sold out once is sold out forever
	keeps     bool // a restock adds to the units that are left
	oversells bool // every order is sold

	mu      sync.Mutex
	soldOut bool                // once
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
		time.Sleep(100 * time.Microsecond) // others come meanwhile
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

// TestCrowds: a burst with mixed order sizes, and a burst for two products, on a correct service and on
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
