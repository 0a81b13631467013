package rush

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/verdict"
)

// shelf is a service that sells, and may remember for ever that it was sold out.
type shelf struct {
	remembers, soldOut bool
	stocked, left      int64

	mu    sync.Mutex
	sales []map[string]any
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodPut:
		var body struct{ Amount int64 }
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.stocked, s.left, s.sales = body.Amount, body.Amount, nil
	case r.URL.Path == "/audit":
		fmt.Fprintf(w, `{"stocked":%d,"leftover":%d,"records":%d,"units_sold":%d}`, s.stocked, s.left, len(s.sales), len(s.sales))
	case r.URL.Path == "/purchase_history":
		_ = json.NewEncoder(w).Encode(map[string]any{"records": s.sales})
	case r.URL.Path == "/product/buy" && r.URL.Query().Has("amount"): // it sells one unit at a time
		w.WriteHeader(http.StatusBadRequest)
	case r.URL.Path == "/product/buy" && (s.left == 0 || s.soldOut && s.remembers):
		s.soldOut = true
		w.WriteHeader(http.StatusConflict)
	case r.URL.Path == "/product/buy":
		s.left--
		sale := map[string]any{"id": len(s.sales) + 1, "purchaser": r.URL.Query().Get("purchaser"), "amount": 1}
		s.sales = append(s.sales, sale)
		_ = json.NewEncoder(w).Encode(sale)
	}
}

// TestRestocks: a service that remembers that it was sold out breaks after a restock,
// though it held, also when another process of it does not; one that forgets it holds.
func TestRestocks(t *testing.T) {
	for _, c := range []struct {
		name              string
		remembers, before bool // it was sold out before
		first, want       verdict.Verdict
	}{
		{"forgets", false, true, verdict.Holds, verdict.Holds},
		{"remembers", true, true, verdict.Holds, verdict.Leaked},
		{"remembers from the first of two restocks", true, false, verdict.Holds, verdict.Leaked},
		{"broke before", true, true, verdict.Oversold, verdict.Oversold},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shelf{remembers: c.remembers, soldOut: c.before}
			server := httptest.NewServer(s)
			defer server.Close()
			target := Target{BaseURL: server.URL, Client: server.Client()}
			config := Config{
				BaseURLs: []string{server.URL, server.URL}, Shelf: target, Auditor: target, Strategy: "mine", Product: "apple",
				Stock: 100, Buyers: 200, Sizes: []int64{11}, Timeout: crowdAt().Timeout, Progress: func(int) {},
			}
			r, err := Restocks(t.Context(), config, Result{Verdict: c.first}, 1)
			if err != nil || r.Verdict != c.want {
				t.Fatalf("%s, %v; want %s", r.Verdict, err, c.want)
			}
			if broke := c.first == verdict.Holds && c.want != c.first; strings.HasPrefix(r.Reason, "after a restock of 10 units: 10 units are left") != broke {
				t.Errorf("reason %q", r.Reason)
			}
		})
	}
}

// TestSoldOut: after a restock a crowd that came one by one is excused, and nothing else.
func TestSoldOut(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Result
		want bool
	}{
		{"holds", Result{Verdict: verdict.Holds, MaxOverlap: 2}, true},
		{"one by one", Result{Verdict: verdict.Inconclusive, MaxOverlap: 1}, true},
		{"one by one, and something is left", Result{Verdict: verdict.Inconclusive, MaxOverlap: 1, Leftover: 1}, false},
		{"one by one, and no answer", Result{Verdict: verdict.Inconclusive, MaxOverlap: 1, Outcomes: Outcomes{Unknown: 1}}, false},
		{"some gave up", Result{Verdict: verdict.Inconclusive, MaxOverlap: 2}, false},
		{"stalled", Result{Verdict: verdict.Stalled, MaxOverlap: 1}, false},
	} {
		if got := c.r.soldOut(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestStalledOnce: a crowd that stood still once is not excused, and not sent again,
// whether its buys were inside at once or one by one.
func TestStalledOnce(t *testing.T) {
	for _, overlap := range []int{1, 2} {
		sent := 0
		r, err := Config{Buyers: 2}.shown(func() (Result, error) {
			sent++
			if sent == 1 {
				return Result{Verdict: verdict.Stalled, MaxOverlap: overlap}, nil
			}
			return Result{Verdict: verdict.Holds, MaxOverlap: 2}, nil
		})
		if err != nil || r.Verdict != verdict.Inconclusive || r.soldOut() || sent != 2 {
			t.Errorf("overlap %d: %s, sold out %v, %d crowds, %v; want inconclusive, false, 2 crowds", overlap, r.Verdict, r.soldOut(), sent, err)
		}
	}
}
