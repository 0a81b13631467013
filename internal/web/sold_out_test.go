package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestSoldOutAhead: a late buyer is told that the product is sold out, even while another buyer
// holds the strategy's lock. It counts like any other refusal. Without the check the buyer waits.
func TestSoldOutAhead(t *testing.T) {
	t.Parallel()
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		if e.Name == engine.Embedded {
			t.Skip("only the shop holds a lock there")
		}
		for _, checked := range []bool{true, false} {
			t.Run(fmt.Sprintf("check=%v", checked), func(t *testing.T) {
				base := startServe(t, e.URLs, waitFor(time.Second), func(s *setup) { s.SoldOutCheck = checked })
				webtest.Restock(t, base, "apple", 1)
				buy := func(query string, header http.Header) response {
					return webtest.Call(t, http.MethodPost, base+"/product/buy?lock=for-update&purchaser=ann"+query, "", header)
				}
				key := http.Header{"Idempotency-Key": {"a-key"}}
				sold := buy("", key)
				if sold.Status != http.StatusOK {
					t.Fatalf("%d %s", sold.Status, sold.Body)
				}
				webtest.WantProblem(t, buy("", nil), http.StatusConflict, "sold_out")
				hold := e.DB.Begin()
				if err := hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error; err != nil {
					t.Fatal(err)
				}
				late := buy("", nil)
				another := buy("", http.Header{"Idempotency-Key": {"another"}})
				if again := buy("", key); again.Status != http.StatusOK || string(again.Body) != string(sold.Body) {
					t.Errorf("the retry: %d %s, want %s", again.Status, again.Body, sold.Body)
				}
				if err := hold.Rollback().Error; err != nil {
					t.Fatal(err)
				}
				if !checked {
					webtest.WantProblem(t, late, http.StatusServiceUnavailable, "busy")
					return
				}
				if p := webtest.WantProblem(t, late, http.StatusConflict, "sold_out"); p.Detail != "sold out: 0 left" || late.Header.Get("Shop-Buy-Span") == "" {
					t.Errorf("%+v, %v", p, late.Header)
				}
				webtest.WantProblem(t, another, http.StatusConflict, "sold_out")
				metrics := string(webtest.Call(t, http.MethodGet, base+"/metrics", "", nil).Body)
				if want := `shop_buys_total{outcome="sold_out",strategy="for-update"} 3`; !strings.Contains(metrics, want) {
					t.Errorf("/metrics lacks %s", want)
				}
				webtest.Restock(t, base, "apple", 5)
				webtest.WantProblem(t, buy("&amount=6", nil), http.StatusConflict, "sold_out")
				if r := buy("&amount=5", nil); r.Status != http.StatusOK {
					t.Errorf("after a restock: %d %s", r.Status, r.Body)
				}
			})
		}
	})
}
