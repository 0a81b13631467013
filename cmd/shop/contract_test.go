package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/web/problem"
)

func TestContract(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		base := startServe(t, serveArgs(e)...)
		for _, strategy := range available(t, base, e) {
			t.Run("sells/"+strategy, func(t *testing.T) { testSells(t, base, strategy) })
			t.Run("restock under load/"+strategy, func(t *testing.T) { testRestockUnderLoad(t, base, strategy) })
		}
		t.Run("aliases", func(t *testing.T) { testAliases(t, base) })
		t.Run("restock", func(t *testing.T) { testRestock(t, base) })
		t.Run("idempotency", func(t *testing.T) { testIdempotency(t, base) })
		t.Run("history", func(t *testing.T) { testHistory(t, base) })
		t.Run("bad input", func(t *testing.T) { testBadInput(t, base) })
		t.Run("operation", func(t *testing.T) { testOperation(t, base) })
	})
}

// available are the strategies that the shop says it can run: all on real
// servers; those that need other ones than Redis are not on the embedded engine.
func available(t *testing.T, base string, e *engine.Engine) (names []string) {
	t.Helper()
	list := decode[[]availableStrategy](t, call(t, http.MethodGet, base+"/strategies", "", nil))
	for _, s := range list {
		if s.Available {
			names = append(names, s.Name)
		}
		if want := e.Name != engine.Embedded || onEmbedded(s.Name); s.Available != want {
			t.Errorf("%s: available %v, want %v (%s)", s.Name, s.Available, want, s.Reason)
		}
	}
	if len(list) != len(lockstrategy.Names()) {
		t.Errorf("%d of %d strategies are listed", len(list), len(lockstrategy.Names()))
	}
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

func restock(t *testing.T, base, product string, units int) {
	t.Helper()
	r := call(t, http.MethodPut, base+"/product/"+url.PathEscape(product), fmt.Sprintf(`{"amount":%d}`, units), nil)
	if r.status != http.StatusOK {
		t.Fatalf("restock: %d %s", r.status, r.body)
	}
}

func books(t *testing.T, base, product string) audit.Report {
	t.Helper()
	return decode[audit.Report](t, call(t, http.MethodGet, base+"/audit?product="+url.QueryEscape(product), "", nil))
}

// wantProblem checks status, outcome and form of an error.
func wantProblem(t *testing.T, r response, status int, outcome string) problem.Details {
	t.Helper()
	p := decode[problem.Details](t, r)
	if r.status != status || p.Status != status || p.Outcome != outcome {
		t.Errorf("%d %s, want %d with outcome %s", r.status, r.body, status, outcome)
	}
	if got := r.header.Get("Content-Type"); got != problem.ContentType {
		t.Errorf("content type %q, want %q", got, problem.ContentType)
	}
	if p.Detail == "" || p.Title != http.StatusText(status) || p.RequestID == "" || strings.Contains(p.Detail, "\n") {
		t.Errorf("not a clear problem: %s", r.body)
	}
	return p
}

func testSells(t *testing.T, base, strategy string) {
	restock(t, base, "pear", 3)
	query := "?product=pear&amount=2&purchaser=ann&lock=" + strategy
	r := call(t, http.MethodGet, base+"/product/buy"+query, "", nil)
	got := decode[receipt](t, r)
	if r.status != http.StatusOK || got.ID == 0 || got.WaitedMS == nil {
		t.Fatalf("%d %s", r.status, r.body)
	}
	got.ID, got.WaitedMS = 0, nil
	if want := (receipt{Product: "pear", Purchaser: "ann", Amount: 2, Left: 1, Strategy: strategy}); got != want {
		t.Errorf("receipt %+v, want %+v", got, want)
	}
	wantProblem(t, call(t, http.MethodPost, base+"/product/buy"+query, "", nil), http.StatusConflict, "sold_out")
	wantProblem(t, call(t, http.MethodGet, base+"/product/buy?product=kiwi&lock="+strategy, "", nil), http.StatusNotFound, "failed")
	if got, want := books(t, base, "pear"), (audit.Report{Stocked: 3, Leftover: 1, Records: 1, UnitsSold: 2}); got != want {
		t.Errorf("books %+v, want %+v", got, want)
	}
}

// testRestockUnderLoad: buyers keep coming while the product is restocked again
// and again; stock and records fit in the end, unless the strategy is one that
// breaks without a restock, too.
func testRestockUnderLoad(t *testing.T, base, strategy string) {
	const buyers, restocks = 4, 4
	name := "restocked-" + strategy
	restock(t, base, name, 20)
	done := make(chan struct{})
	var all sync.WaitGroup
	for range buyers {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				r := call(t, http.MethodGet, base+"/product/buy?product="+name+"&lock="+strategy, "", nil)
				if r.status != http.StatusOK && r.status != http.StatusConflict && r.status != http.StatusServiceUnavailable {
					t.Errorf("%d %s", r.status, r.body)
				}
			}
		})
	}
	for i := range restocks {
		eventually(t, "somebody buys between two restocks", func() bool { return books(t, base, name).Records > 0 })
		restock(t, base, name, 20+i)
	}
	close(done)
	all.Wait()
	entry, _ := lockstrategy.ByName(strategy)
	if got := books(t, base, name); entry.Promise[promise.Rush] == verdict.Holds && (got.Drift != 0 || got.Oversold != 0) {
		t.Errorf("books %+v, want no drift", got)
	}
}

func testAliases(t *testing.T, base string) {
	restock(t, base, "apple", 5)
	for lock, want := range map[string]string{"": "none", "?lock=N": "none", "?lock=Y": "redis"} {
		got := decode[receipt](t, call(t, http.MethodGet, base+"/product/buy"+lock, "", nil))
		if got.Strategy != want || got.Product != "apple" || got.Amount != 1 || got.Purchaser == "" {
			t.Errorf("lock %q: %+v, want one apple by %s", lock, got, want)
		}
	}
}

func testRestock(t *testing.T, base string) {
	name := "a/b ü"
	restock(t, base, name, 2)
	r := call(t, http.MethodGet, base+"/product/buy?lock=conditional&product="+url.QueryEscape(name), "", nil)
	if r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	restock(t, base, name, 7)
	if got, want := books(t, base, name), (audit.Report{Stocked: 7, Leftover: 7}); got != want {
		t.Errorf("books after a restock %+v, want %+v", got, want)
	}
	type stock struct {
		Name    string `json:"name"`
		Amount  int64  `json:"amount"`
		Stocked int64  `json:"stocked"`
	}
	want := stock{name, 7, 7}
	if got := decode[stock](t, call(t, http.MethodGet, base+"/product/"+url.PathEscape(name), "", nil)); got != want {
		t.Errorf("product %+v, want %+v", got, want)
	}
	list := decode[struct{ Products []stock }](t, call(t, http.MethodGet, base+"/product", "", nil))
	found := false
	for _, p := range list.Products {
		found = found || p == want
	}
	if !found {
		t.Errorf("list %+v lacks %+v", list, want)
	}
}

func testIdempotency(t *testing.T, base string) {
	restock(t, base, "apple", 5)
	key := http.Header{"Idempotency-Key": {"order-1"}, "Content-Type": {"application/json"}}
	body := `{"product":"apple","purchaser":"ann","amount":2,"lock":"for-update"}`
	first := call(t, http.MethodPost, base+"/product/buy", body, key)
	if first.status != http.StatusOK {
		t.Fatalf("%d %s", first.status, first.body)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			again := call(t, http.MethodPost, base+"/product/buy", body, key)
			if again.status != http.StatusOK || !bytes.Equal(again.body, first.body) {
				t.Errorf("again: %d %s, want %s", again.status, again.body, first.body)
			}
		})
	}
	all.Wait()
	other := strings.Replace(body, `"amount":2`, `"amount":1`, 1)
	wantProblem(t, call(t, http.MethodPost, base+"/product/buy", other, key), http.StatusUnprocessableEntity, "failed")
	if got := books(t, base, "apple"); got.Records != 1 || got.UnitsSold != 2 || got.Drift != 0 {
		t.Errorf("books %+v, want one record", got)
	}
	// Without a purchaser the key names it, so the repeated request is the same order.
	anonymous := http.Header{"Idempotency-Key": {"order-2"}}
	a := call(t, http.MethodPost, base+"/product/buy?lock=redis", "", anonymous)
	b := call(t, http.MethodPost, base+"/product/buy?lock=redis", "", anonymous)
	if a.status != http.StatusOK || !bytes.Equal(a.body, b.body) {
		t.Errorf("anonymous: %s and %s", a.body, b.body)
	}
}

func testHistory(t *testing.T, base string) {
	type page struct {
		Records []map[string]any `json:"records"`
		Next    *int64           `json:"next"`
	}
	restock(t, base, "plum", 5)
	for i := range 5 {
		call(t, http.MethodGet, fmt.Sprintf("%s/product/buy?lock=conditional&product=plum&purchaser=p%d", base, i), "", nil)
	}
	var seen []string
	after := int64(0)
	for pages := 0; ; pages++ {
		p := decode[page](t, call(t, http.MethodGet, fmt.Sprintf("%s/purchase_history?product=plum&limit=2&after=%d", base, after), "", nil))
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
	if got, want := strings.Join(seen, " "), "p0 p1 p2 p3 p4"; got != want {
		t.Errorf("pages show %s, want %s", got, want)
	}
	empty := call(t, http.MethodGet, base+"/purchase_history?product=nobody", "", nil)
	if got := string(empty.body); got != `{"next":null,"records":[]}` {
		t.Errorf("no records: %s", got)
	}
}

func testBadInput(t *testing.T, base string) {
	restock(t, base, "apple", 5)
	before := books(t, base, "apple")
	long := strings.Repeat("x", 256)
	longest := strings.Repeat("ü", 255) // characters, not bytes
	if r := call(t, http.MethodPut, base+"/product/"+url.PathEscape(longest), `{"amount":5}`, nil); r.status != http.StatusOK {
		t.Errorf("a name of 255 characters: %d %s", r.status, r.body)
	}
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
		{"amount no number", "GET", "/product/buy?amount=two", "", nil, 400},
		{"empty amount", "GET", "/product/buy?amount=", "", nil, 400},
		{"fraction", "GET", "/product/buy?amount=1.5", "", nil, 400},
		{"amount above the maximum", "GET", "/product/buy?amount=1001", "", nil, 400},
		{"amount beyond 64 bits", "GET", "/product/buy?amount=99999999999999999999", "", nil, 400},
		{"long product", "GET", "/product/buy?product=" + long, "", nil, 400},
		{"long purchaser", "GET", "/product/buy?purchaser=" + long, "", nil, 400},
		{"empty product", "GET", "/product/buy?product=", "", nil, 400},
		{"product not UTF-8", "GET", "/product/buy?product=%ff", "", nil, 400},
		{"purchaser not UTF-8", "GET", "/product/buy?purchaser=a%c3", "", nil, 400},
		{"control character", "GET", "/product/buy?purchaser=a%00b", "", nil, 400},
		{"trailing space", "GET", "/product/buy?product=apple%20", "", nil, 400},
		{"amount twice", "GET", "/product/buy?amount=1&amount=2", "", nil, 400},
		{"audit with a broken escape", "GET", "/audit?product=%zz", "", nil, 400},
		{"history with a broken escape", "GET", "/purchase_history?product=%zz", "", nil, 400},
		{"broken escape", "GET", "/product/buy?amount=%zz", "", nil, 400},
		{"broken body", "POST", "/product/buy", `{"amount":`, asJSON, 400},
		{"body is a list", "POST", "/product/buy", `[1]`, asJSON, 400},
		{"body goes on", "POST", "/product/buy", `{} {}`, asJSON, 400},
		{"body ends twice", "POST", "/product/buy", `{"amount":1}}`, asJSON, 400},
		{"body is null", "POST", "/product/buy", `null`, asJSON, 400},
		{"amount is null", "POST", "/product/buy", `{"amount":null}`, asJSON, 400},
		{"body not UTF-8", "POST", "/product/buy", "{\"purchaser\":\"a\xff\"}", asJSON, 400},
		{"half a surrogate", "POST", "/product/buy", `{"purchaser":"\ud800"}`, asJSON, 400},
		{"amount twice in body", "POST", "/product/buy", `{"amount":1,"amount":2}`, asJSON, 400},
		{"capital letters", "POST", "/product/buy", `{"AMOUNT":2}`, asJSON, 400},
		{"two keys", "POST", "/product/buy", "", http.Header{"Idempotency-Key": {"a", "b"}}, 400},
		{"empty key", "POST", "/product/buy", "", http.Header{"Idempotency-Key": {""}}, 400},
		{"slash at the end", "GET", "/healthz/", "", nil, 404},
		{"misspelt member", "POST", "/product/buy", `{"amout":2}`, asJSON, 400},
		{"amount as text", "POST", "/product/buy", `{"amount":"2"}`, asJSON, 400},
		{"fraction in body", "POST", "/product/buy", `{"amount":1.5}`, asJSON, 400},
		{"amount 0 in body", "POST", "/product/buy", `{"amount":0}`, asJSON, 400},
		{"not JSON", "POST", "/product/buy", `amount=2`, http.Header{"Content-Type": {"text/plain"}}, 400},
		{"oversized body", "POST", "/product/buy", `{"purchaser":"` + strings.Repeat("x", maxBody) + `"}`, asJSON, 413},
		{"long key", "POST", "/product/buy", "", http.Header{"Idempotency-Key": {long}}, 400},
		{"restock below 0", "PUT", "/product/apple", `{"amount":-1}`, asJSON, 400},
		{"restock above the maximum", "PUT", "/product/apple", `{"amount":1000000001}`, asJSON, 400},
		{"restock of nothing", "PUT", "/product/apple", `{}`, asJSON, 400},
		{"restock without a body", "PUT", "/product/apple", ``, asJSON, 400},
		{"restock with null", "PUT", "/product/apple", `{"amount":null}`, asJSON, 400},
		{"restock that ends twice", "PUT", "/product/apple", `{"amount":5}}`, asJSON, 400},
		{"restock with a broken body", "PUT", "/product/apple", `{"amount":5`, asJSON, 400},
		{"oversized restock", "PUT", "/product/apple", strings.Repeat(" ", maxBody+1) + `{"amount":1}`, asJSON, 413},
		{"restock of a long name", "PUT", "/product/" + long, `{"amount":5}`, asJSON, 400},
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
			wantProblem(t, call(t, c.method, base+c.path, c.body, c.header), c.status, "failed")
		})
	}
	if after := books(t, base, "apple"); after != before {
		t.Errorf("books %+v, before %+v: bad input has changed something", after, before)
	}
}

func testOperation(t *testing.T, base string) {
	for _, path := range []string{"/healthz", "/readyz", "/strategies", "/openapi.yaml", "/"} {
		if r := call(t, http.MethodGet, base+path, "", nil); r.status != http.StatusOK {
			t.Errorf("%s: %d %.200s", path, r.status, r.body)
		}
	}
	metrics := string(call(t, http.MethodGet, base+"/metrics", "", nil).body)
	for _, want := range []string{
		`shop_buys_total{outcome="sold",strategy="redlock"}`, `shop_buys_total{outcome="sold_out",strategy="none"}`,
		`shop_buys_total{outcome="replayed",strategy="redis"} 1`,
		`shop_buy_seconds_bucket{strategy="mutex",le="0.001"}`, `shop_lock_wait_seconds_count{strategy="redis"}`, "shop_buys_in_flight 0",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	id := call(t, http.MethodGet, base+"/healthz", "", http.Header{problem.RequestIDHeader: {"my-id.1"}}).header
	if got := id.Get(problem.RequestIDHeader); got != "my-id.1" {
		t.Errorf("request id %q, want the caller's", got)
	}
}

// TestNotConfigured: a known strategy without its server is 501, and says what to set.
func TestNotConfigured(t *testing.T) {
	e := enginetest.Embedded(t)
	base := startServe(t, "--db", e.URLs.DB)
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
		p := wantProblem(t, call(t, http.MethodGet, base+"/product/buy?lock="+strategy, "", nil), http.StatusNotImplemented, "failed")
		if flag == "" || !strings.Contains(p.Detail, flag) {
			t.Errorf("%s: %q does not name %s", strategy, p.Detail, flag)
		}
	}
	for _, s := range decode[[]availableStrategy](t, call(t, http.MethodGet, base+"/strategies", "", nil)) {
		if _, lacks := lacking[s.Name]; s.Available == lacks || (s.Reason != "") != lacks {
			t.Errorf("%+v", s)
		}
	}
}
