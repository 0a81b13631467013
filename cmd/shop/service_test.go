package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// service is a shop in memory, with the routes in docs/guides/test-your-shop.md. Each field makes
// it wrong in one way, or leaves out one feature.
type service struct {
	oversell   bool  // it never refuses
	forgets    int64 // units that vanish with the first sale
	ignoresKey bool
	refusesKey bool // a used key gets 409
	busyKey    bool // a repeated used key gets 503
	dates      bool // no two receipts are equal byte for byte
	dropsGone  bool // a buyer that has gone gets no record, but its unit is taken
	loses      bool // the last sale is acknowledged and not recorded
	untold     bool // it tells one of two buyers that it is sold out, and records the sale
	forges     bool // it tells each tenth buyer of a sale that did not happen
	getOnly    bool
	remembers  bool   // it stays sold out after a restock
	hasty      bool   // it sends the first bytes of an answer before it knows the outcome
	audit      string // wrong members of /audit; null omits a member
	stockMore  int64  // more units than the PUT has requested
	units      int64  // units of each sale; 0 means 1
	promise    string // the promise for a rush in /strategies
	noHistory  bool
	pageLimit  int // records in a page; 0: all
	stuckPages bool

	mu            sync.Mutex
	wasSoldOut    bool
	stocked, left int64
	sales         []sale
	byKey         map[string]sale
	asked         map[string]bool // by key: whether it was repeated
}

type sale struct {
	ID        int64  `json:"id"`
	Purchaser string `json:"purchaser"`
	Amount    int64  `json:"amount"`
	Time      string `json:"purchase_time"` // has no time zone
	Answered  int64  `json:"answered,omitempty"`
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.hasty && r.URL.Path == "/product/buy" {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodPut:
		var body struct{ Amount int64 }
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.stocked = body.Amount + s.stockMore
		s.left, s.sales, s.byKey, s.asked = s.stocked, nil, map[string]sale{}, map[string]bool{}
	case r.URL.Path == "/product/buy" && (r.Method == http.MethodGet || !s.getOnly):
		s.buy(w, r)
	case r.URL.Path == "/audit":
		records := int64(len(s.sales))
		sums := map[string]any{"stocked": s.stocked, "leftover": s.left, "records": records, "units_sold": records * max(s.units, 1)}
		_ = json.Unmarshal([]byte(s.audit), &sums)
		answer(w, http.StatusOK, sums)
	case r.URL.Path == "/purchase_history" && !s.noHistory:
		answer(w, http.StatusOK, s.page(r.FormValue("after")))
	case r.URL.Path == "/strategies" && s.promise != "":
		answer(w, http.StatusOK, []any{map[string]any{"name": "my-lock", "promise": map[string]string{"rush": s.promise}}})
	default:
		w.WriteHeader(http.StatusNotImplemented)
	}
}

func (s *service) page(text string) map[string]any {
	after, _ := strconv.Atoi(text)
	if s.stuckPages {
		after = 0
	}
	end := len(s.sales)
	if s.pageLimit > 0 {
		end = min(end, after+s.pageLimit)
	}
	page := map[string]any{"records": s.sales[after:end], "next": nil}
	if end < len(s.sales) {
		page["next"] = end
	}
	return page
}

func (s *service) buy(w http.ResponseWriter, r *http.Request) {
	key, buyer := r.Header.Get("Idempotency-Key"), r.FormValue("purchaser")
	if earlier, ok := s.byKey[key]; ok && key != "" && !s.ignoresKey {
		switch {
		case s.refusesKey:
			answer(w, http.StatusConflict, map[string]string{"outcome": "sold_out"})
		case s.busyKey && s.asked[key]:
			answer(w, http.StatusServiceUnavailable, map[string]string{"outcome": "busy"})
		default:
			s.asked[key] = true
			s.receipt(w, earlier)
		}
		return
	}
	if s.forges && strings.HasSuffix(buyer, "7") {
		answer(w, http.StatusOK, map[string]any{"id": 999_999})
		return
	}
	time.Sleep(time.Millisecond) // work under the lock
	units := max(s.units, 1)
	if s.left < units && !s.oversell || s.remembers && s.wasSoldOut {
		s.wasSoldOut = true
		answer(w, http.StatusConflict, map[string]string{"outcome": "sold_out"})
		return
	}
	s.left = max(0, s.left-units)
	if len(s.sales) == 0 {
		s.left -= s.forgets
	}
	if s.dropsGone && r.Context().Err() != nil {
		return
	}
	sold := sale{ID: int64(len(s.sales) + 1), Purchaser: buyer, Amount: units, Time: "2026-11-21T07:48:49.428421"}
	if !s.loses || s.left > 0 {
		s.sales = append(s.sales, sold)
	}
	s.byKey[key] = sold
	if s.untold && sold.ID%2 == 0 {
		answer(w, http.StatusConflict, map[string]string{"outcome": "sold_out"})
		return
	}
	s.receipt(w, sold)
}

func (s *service) receipt(w http.ResponseWriter, sold sale) {
	if s.units > 0 { // a receipt without the number of units
		answer(w, http.StatusOK, map[string]any{"id": sold.ID})
		return
	}
	if s.dates {
		sold.Answered = time.Now().UnixNano()
	}
	answer(w, http.StatusOK, sold)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
