package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/lockstrategytest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/problem"
	"github.com/oversell/oversell/internal/web/webtest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	enginetest.EachCoordinated(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		base := startServe(t, e.URLs)
		for _, strategy := range available(t, base, e) {
			t.Run("sells/"+strategy, func(t *testing.T) { testSells(t, base, strategy) })
		}
		t.Run("aliases", func(t *testing.T) { testAliases(t, base) })
		t.Run("restock", func(t *testing.T) { testRestock(t, base) })
		t.Run("idempotency", func(t *testing.T) { testIdempotency(t, base) })
		t.Run("history", func(t *testing.T) { testHistory(t, base) })
		t.Run("bad input", func(t *testing.T) { testBadInput(t, base) })
		t.Run("operation", func(t *testing.T) { testOperation(t, base) })
	})
}

// available returns the strategies that the shop can run: all of them on real servers, except those that
// need a server that only make soak starts. On the embedded engine, strategies that need servers other
// than Redis are missing.
func available(t *testing.T, base string, e *engine.Engine) (names []string) {
	t.Helper()
	list := webtest.Decode[[]availableStrategy](t, webtest.Call(t, http.MethodGet, base+"/strategies", "", nil))
	for _, s := range list {
		if s.Available {
			names = append(names, s.Name)
		}
		entry, _ := lockstrategy.ByName(s.Name)
		want := lockstrategytest.OnEmbedded(entry)
		if e.Name != engine.Embedded {
			want = tier.Soaking() || !slices.Contains(entry.Needs, lockstrategy.NeedsZookeeper) && !slices.Contains(entry.Needs, lockstrategy.NeedsEtcd)
		}
		expect.Equal(t, s.Available, want, s.Name, "available", s.Reason)
	}
	expect.Equal(t, len(list), len(lockstrategy.Names()), "listed strategies")
	return names
}

type receipt struct {
	ID        int64  `json:"id"`
	Product   string `json:"product"`
	Purchaser string `json:"purchaser"`
	Amount    int64  `json:"amount"`
	Left      int64  `json:"left"`
	Strategy  string `json:"strategy"`
	WaitedMS  *int64 `json:"waited_ms"`
}

func testSells(t *testing.T, base, strategy string) {
	webtest.Restock(t, base, "pear", 3)
	query := "?product=pear&amount=2&purchaser=ann&lock=" + strategy
	r := webtest.Call(t, http.MethodGet, base+"/product/buy"+query, "", nil)
	got := webtest.Decode[receipt](t, r)
	if r.Status != http.StatusOK || got.ID == 0 || got.WaitedMS == nil {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	got.ID, got.WaitedMS = 0, nil
	expect.Equal(t, got, receipt{Product: "pear", Purchaser: "ann", Amount: 2, Left: 1, Strategy: strategy}, "receipt")
	webtest.WantProblem(t, webtest.Call(t, http.MethodPost, base+"/product/buy"+query, "", nil), http.StatusConflict, "sold_out")
	webtest.WantProblem(t, webtest.Call(t, http.MethodGet, base+"/product/buy?product=kiwi&lock="+strategy, "", nil), http.StatusNotFound, "failed")
	expect.Equal(t, webtest.Audit(t, base, "pear"), audit.Sums{Stocked: 3, Leftover: 1, Records: 1, UnitsSold: 2}, "stock and records")
}

func testAliases(t *testing.T, base string) {
	webtest.Restock(t, base, "apple", 5)
	for lock, want := range map[string]string{"": "none", "?lock=N": "none", "?lock=Y": "redis"} {
		got := webtest.Decode[receipt](t, webtest.Call(t, http.MethodGet, base+"/product/buy"+lock, "", nil))
		if got.Strategy != want || got.Product != "apple" || got.Amount != 1 || got.Purchaser == "" {
			t.Errorf("lock %q: %+v, want one apple by %s", lock, got, want)
		}
	}
}

func testRestock(t *testing.T, base string) {
	name := "a/b ü"
	webtest.Restock(t, base, name, 2)
	r := webtest.Call(t, http.MethodGet, base+"/product/buy?lock=conditional&product="+url.QueryEscape(name), "", nil)
	if r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	webtest.Restock(t, base, name, 7)
	expect.Equal(t, webtest.Audit(t, base, name), audit.Sums{Stocked: 7, Leftover: 7}, "after a restock")
	type stock struct {
		Name    string `json:"name"`
		Amount  int64  `json:"amount"`
		Stocked int64  `json:"stocked"`
	}
	want := stock{name, 7, 7}
	expect.Equal(t, webtest.Decode[stock](t, webtest.Call(t, http.MethodGet, base+"/product/"+url.PathEscape(name), "", nil)), want, "product")
	list := webtest.Decode[struct{ Products []stock }](t, webtest.Call(t, http.MethodGet, base+"/product", "", nil))
	found := false
	for _, p := range list.Products {
		found = found || p == want
	}
	if !found {
		t.Errorf("list %+v lacks %+v", list, want)
	}
}

func testIdempotency(t *testing.T, base string) {
	webtest.Restock(t, base, "apple", 5)
	key := http.Header{"Idempotency-Key": {"order-1"}, "Content-Type": {"application/json"}}
	body := `{"product":"apple","purchaser":"ann","amount":2,"lock":"for-update"}`
	first := webtest.Call(t, http.MethodPost, base+"/product/buy", body, key)
	if first.Status != http.StatusOK {
		t.Fatalf("%d %s", first.Status, first.Body)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			again := webtest.Call(t, http.MethodPost, base+"/product/buy", body, key)
			if again.Status != http.StatusOK || !bytes.Equal(again.Body, first.Body) {
				t.Errorf("again: %d %s, want %s", again.Status, again.Body, first.Body)
			}
		})
	}
	all.Wait()
	other := strings.Replace(body, `"amount":2`, `"amount":1`, 1)
	webtest.WantProblem(t, webtest.Call(t, http.MethodPost, base+"/product/buy", other, key), http.StatusUnprocessableEntity, "failed")
	if got := webtest.Audit(t, base, "apple"); got.Records != 1 || got.UnitsSold != 2 || got.Drift != 0 {
		t.Errorf("stock and records %+v, want one record", got)
	}
	// Without a purchaser, the key determines the name, so the repeated request is the same order.
	anonymous := http.Header{"Idempotency-Key": {"order-2"}}
	a := webtest.Call(t, http.MethodPost, base+"/product/buy?lock=redis", "", anonymous)
	b := webtest.Call(t, http.MethodPost, base+"/product/buy?lock=redis", "", anonymous)
	if a.Status != http.StatusOK || !bytes.Equal(a.Body, b.Body) {
		t.Errorf("anonymous: %s and %s", a.Body, b.Body)
	}
}

func testHistory(t *testing.T, base string) {
	type page struct {
		Records []map[string]any `json:"records"`
		Next    *int64           `json:"next"`
	}
	webtest.Restock(t, base, "plum", 5)
	for i := range 5 {
		webtest.Call(t, http.MethodGet, fmt.Sprintf("%s/product/buy?lock=conditional&product=plum&purchaser=p%d", base, i), "", nil)
	}
	var seen []string
	after := int64(0)
	for pages := 0; ; pages++ {
		p := webtest.Decode[page](t, webtest.Call(t, http.MethodGet, fmt.Sprintf("%s/purchase_history?product=plum&limit=2&after=%d", base, after), "", nil))
		for _, r := range p.Records {
			seen = append(seen, r["purchaser"].(string))
			for _, member := range []string{"id", "product_name", "purchaser", "purchase_time", "amount", "strategy"} {
				if r[member] == nil {
					t.Errorf("record %v lacks %s", r, member)
				}
			}
		}
		if p.Next == nil || pages > 5 {
			break
		}
		after = *p.Next
	}
	expect.Equal(t, strings.Join(seen, " "), "p0 p1 p2 p3 p4", "pages")
	empty := webtest.Call(t, http.MethodGet, base+"/purchase_history?product=nobody", "", nil)
	expect.Equal(t, string(empty.Body), `{"next":null,"records":[]}`, "no records")
}

func testBadInput(t *testing.T, base string) {
	webtest.Restock(t, base, "apple", 5)
	before := webtest.Audit(t, base, "apple")
	longest := strings.Repeat("ü", 255) // characters, not bytes
	webtest.WantStatus(t, webtest.Call(t, http.MethodPut, base+"/product/"+url.PathEscape(longest), `{"amount":5}`, nil), http.StatusOK, "a name of 255 characters")
	asJSON := http.Header{"Content-Type": {"application/json"}}
	for _, c := range []struct {
		name, method, path, body string
		header                   http.Header
		status                   int
	}{
		{"unknown strategy", "GET", "/product/buy?lock=magic", "", nil, 400},
		{"unknown product", "GET", "/product/buy?product=moon", "", nil, 404},
		{"amount 0", "GET", "/product/buy?amount=0", "", nil, 400},
		{"negative amount", "GET", "/product/buy?amount=-1", "", nil, 400},
		{"amount above the maximum", "GET", "/product/buy?amount=1001", "", nil, 400},
		{"purchaser not UTF-8", "GET", "/product/buy?purchaser=a%c3", "", nil, 400},
		{"amount twice", "GET", "/product/buy?amount=1&amount=2", "", nil, 400},
		{"history with a broken escape", "GET", "/purchase_history?product=%zz", "", nil, 400},
		{"broken body", "POST", "/product/buy", `{"amount":`, asJSON, 400},
		{"two keys", "POST", "/product/buy", "", http.Header{"Idempotency-Key": {"a", "b"}}, 400},
		{"empty key", "POST", "/product/buy", "", http.Header{"Idempotency-Key": {""}}, 400},
		{"slash at the end", "GET", "/healthz/", "", nil, 404},
		{"misspelt member", "POST", "/product/buy", `{"amout":2}`, asJSON, 400},
		{"amount as text", "POST", "/product/buy", `{"amount":"2"}`, asJSON, 400},
		{"fraction in body", "POST", "/product/buy", `{"amount":1.5}`, asJSON, 400},
		{"amount 0 in body", "POST", "/product/buy", `{"amount":0}`, asJSON, 400},
		{"not JSON", "POST", "/product/buy", `amount=2`, http.Header{"Content-Type": {"text/plain"}}, 400},
		{"oversized body", "POST", "/product/buy", `{"purchaser":"` + strings.Repeat("x", maxBody) + `"}`, asJSON, 413},
		{"restock below 0", "PUT", "/product/apple", `{"amount":-1}`, asJSON, 400},
		{"oversized restock", "PUT", "/product/apple", strings.Repeat(" ", maxBody+1) + `{"amount":1}`, asJSON, 413},
		{"a product called buy", "PUT", "/product/buy", `{"amount":5}`, asJSON, 400},
		{"unknown product", "GET", "/product/moon", "", nil, 404},
		{"audit of an unknown product", "GET", "/audit?product=moon", "", nil, 404},
		{"history limit", "GET", "/purchase_history?limit=1001", "", nil, 400},
		{"history limit 0", "GET", "/purchase_history?limit=0", "", nil, 400},
		{"history after", "GET", "/purchase_history?after=x", "", nil, 400},
		{"no such route", "GET", "/nowhere", "", nil, 404},
		{"no such method", "DELETE", "/product/apple", "", nil, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			webtest.WantProblem(t, webtest.Call(t, c.method, base+c.path, c.body, c.header), c.status, "failed")
		})
	}
	expect.Equal(t, webtest.Audit(t, base, "apple"), before, "bad input has changed something")
}

func testOperation(t *testing.T, base string) {
	for _, path := range []string{"/healthz", "/readyz", "/strategies", "/openapi.yaml", "/"} {
		webtest.WantStatus(t, webtest.Call(t, http.MethodGet, base+path, "", nil), http.StatusOK, path)
	}
	metrics := string(webtest.Call(t, http.MethodGet, base+"/metrics", "", nil).Body)
	for _, want := range []string{
		`shop_buys_total{outcome="sold",strategy="redlock"}`, `shop_buys_total{outcome="sold_out",strategy="none"}`,
		`shop_buys_total{outcome="replayed",strategy="redis"} 1`,
		`shop_buy_seconds_bucket{strategy="mutex",le="0.001"}`, `shop_lock_wait_seconds_count{strategy="redis"}`, `shop_section_seconds{strategy="redis",quantile="0.99"}`, "shop_buys_in_flight 0",
	} {
		expect.Contains(t, metrics, want, "/metrics")
	}
	id := webtest.Call(t, http.MethodGet, base+"/healthz", "", http.Header{problem.RequestIDHeader: {"my-id.1"}}).Header
	expect.Equal(t, id.Get(problem.RequestIDHeader), "my-id.1", "request id")
}

// TestNotConfigured: a known strategy without its server gives 501 and says what to set.
func TestNotConfigured(t *testing.T) {
	t.Parallel()
	e := enginetest.Embedded(t)
	base := startServe(t, engine.Config{DB: e.URLs.DB})
	says := map[lockstrategy.Need]string{
		lockstrategy.NeedsRedis: "--redis", lockstrategy.NeedsRedlock: "--redlock", lockstrategy.NeedsNamedLocks: "--engine local", lockstrategy.NeedsSkipLocked: "--engine local",
		lockstrategy.NeedsZookeeper: "--zookeeper", lockstrategy.NeedsEtcd: "--etcd",
	}
	lacking := map[string]string{}
	for _, e := range lockstrategy.All() {
		if len(e.Needs) > 0 {
			lacking[e.Name] = says[e.Needs[0]]
		}
	}
	for strategy, flag := range lacking {
		p := webtest.WantProblem(t, webtest.Call(t, http.MethodGet, base+"/product/buy?lock="+strategy, "", nil), http.StatusNotImplemented, "failed")
		if flag == "" || !strings.Contains(p.Detail, flag) {
			t.Errorf("%s: %q does not name %s", strategy, p.Detail, flag)
		}
	}
	for _, s := range webtest.Decode[[]availableStrategy](t, webtest.Call(t, http.MethodGet, base+"/strategies", "", nil)) {
		if _, lacks := lacking[s.Name]; s.Available == lacks || (s.Reason != "") != lacks {
			t.Errorf("%+v", s)
		}
	}
}
