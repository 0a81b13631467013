package web

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/goccy/go-yaml"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/web/problem"
)

// A fuzzedShop is a served shop without its listener.
type fuzzedShop struct {
	engine     *engine.Engine
	handler    *gin.Engine
	routes     gin.RoutesInfo
	strategies []string
	statuses   map[string]map[int]bool // statuses in openapi.yaml except 500, by "GET /path"
	served     int
}

func newFuzzedShop(tb testing.TB) *fuzzedShop {
	tb.Helper()
	settings := lockstrategy.DefaultSettings()
	settings.Wait = 20 * time.Second // requests come one after the other, so none waits
	e, err := engine.Open(tb.Context(), engine.Config{Name: engine.Embedded, Wait: settings.Wait, Conns: 16})
	require.NoError(tb, err)
	shop := New(e, Config{Settings: settings, MaxInflight: 10, SoldOutCheck: true, Admission: true, Sender: idle{}}, slog.New(slog.DiscardHandler))
	stop := shop.Work(context.Background())
	tb.Cleanup(func() {
		stop()
		expect.NoError(tb, e.Close())
	})
	h := shop.handler(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, "")
	return &fuzzedShop{
		engine: e, handler: h, routes: h.Routes(), strategies: slices.Sorted(maps.Keys(shop.counter.Strategies)), statuses: documented(tb),
	}
}

// documented returns the statuses in openapi.yaml for each route.
func documented(tb testing.TB) map[string]map[int]bool {
	tb.Helper()
	var document struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	require.NoError(tb, yaml.Unmarshal(openAPI, &document))
	all := map[string]map[int]bool{}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			fields, _ := operation.(map[string]any)
			responses, _ := fields["responses"].(map[string]any)
			statuses := map[int]bool{}
			for text := range responses {
				status, err := strconv.Atoi(text)
				require.NoError(tb, err, method, path, text)
				statuses[status] = status != http.StatusInternalServerError // 500 stands for unforeseen errors
			}
			all[strings.ToUpper(method)+" "+path] = statuses
		}
	}
	return all
}

// An input is a request. The field route is the number of one of the shop's routes. If it is higher
// than the last number, the request has the fields method and path. Empty fields are not sent.
type input struct {
	route, strategy                     uint8
	method, path, query                 string
	key, contentType, host, other, body string
}

// plain returns a request that the route answers with 200.
func (s *fuzzedShop) plain(route int) input {
	in := input{route: uint8(route), path: "apple", contentType: "application/json"}
	switch r := s.routes[route]; r.Method + " " + r.Path {
	case "PUT /room/sale":
		in.body = `{"product":"apple","strategy":"for-update","stock":10}`
	case "PUT /room/door":
		in.body = `{"open":false}`
	case "POST /room/buyers":
		in.body = `{"phone":"0123456789abcdef0123456789abcdef","name":"Ann"}`
	case "POST /room/buy":
		in.body = `{"phone":"0123456789abcdef0123456789abcdef"}`
	default:
		if r.Method == http.MethodPut {
			in.body = `{"amount": 100}`
		}
	}
	return in
}

// notOK lists the routes that answer with another status than 200.
var notOK = map[string]int{
	"GET /room/qr.svg":     http.StatusNotFound,   // on loopback there is no address for phones
	"POST /room/buy":       http.StatusBadRequest, // plain sends no Idempotency-Key
	"GET /live/runs/:name": http.StatusNotFound,   // there was no run
	"POST /live/runs":      http.StatusBadRequest, // plain names no strategy, since a run would start shops
	"POST /live/strikes":   http.StatusBadRequest,
	"POST /live/stop":      http.StatusConflict, // no run is under way
}

// streamWriter is a recorder that accepts deadlines, like the server's writer.
type streamWriter struct{ *httptest.ResponseRecorder }

func (streamWriter) SetWriteDeadline(time.Time) error { return nil }

// request returns the request that net/http would pass to the handler, or nil if it would refuse
// it. The result `route` is "" if the input has no route.
func (s *fuzzedShop) request(in input) (r *http.Request, route string) {
	target := &url.URL{RawQuery: in.query}
	method, at := in.method, int(in.route)%(len(s.routes)+1)
	if at == len(s.routes) {
		path, err := url.ParseRequestURI(in.path)
		if err != nil || !strings.HasPrefix(path.Path, "/") {
			return nil, ""
		}
		target.Path, target.RawPath = path.Path, path.RawPath
	} else {
		method, target.Path = s.routes[at].Method, s.routes[at].Path
		if before, found := strings.CutSuffix(target.Path, ":name"); found {
			target.Path, target.RawPath = before+in.path, before+url.PathEscape(in.path)
		}
		route = method + " " + strings.ReplaceAll(s.routes[at].Path, ":name", "{name}")
		if strings.HasSuffix(target.Path, "/product/buy") && !strings.Contains(in.query, "lock=") {
			target.RawQuery = strings.TrimPrefix(in.query+"&lock="+s.strategies[int(in.strategy)%len(s.strategies)], "&")
		}
	}
	r, err := http.NewRequest(method, "http://127.0.0.1", strings.NewReader(in.body))
	if err != nil {
		return nil, "" // the method is invalid
	}
	r.URL, r.RequestURI = target, target.RequestURI()
	if in.body == "" {
		r.Body = http.NoBody
	}
	if in.host != "" {
		r.Host = in.host
	}
	for name, value := range map[string]string{
		"Idempotency-Key": in.key, "Content-Type": in.contentType, problem.RequestIDHeader: in.other, "Accept": in.other, "Accept-Encoding": in.other, "Authorization": in.other,
	} {
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return nil, ""
		}
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r, route
}

func (s *fuzzedShop) serve(t *testing.T, in input) (status int) {
	if s.served++; s.served%1000 == 0 {
		s.tidy(t)
	} else if s.served%32 == 0 { // strategies that divide the stock have taken all of it
		s.fill(t)
	}
	r, route := s.request(in)
	if r == nil {
		return 0
	}
	limit := 10 * time.Second
	if strings.HasPrefix(r.URL.Path, "/live/events") {
		limit = time.Millisecond // the stream is endless
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	w := streamWriter{httptest.NewRecorder()}
	s.handler.ServeHTTP(w, r.WithContext(ctx))

	status = w.Code
	body, _ := io.ReadAll(w.Result().Body)
	media, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	switch {
	case status == http.StatusInternalServerError:
		t.Fatalf("%s %s: %d %s", r.Method, r.RequestURI, status, body)
	case status == http.StatusBadRequest, status == http.StatusMisdirectedRequest: // possible for every route: an unreadable query, or a Host that is not the shop's
	case route == "" && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed):
	case route != "" && !s.statuses[route][status] && !(strings.HasSuffix(route, "{name}") && s.elsewhere(in.path)):
		t.Fatalf("%s answers %d, which openapi.yaml does not have: %s", route, status, body)
	}
	if status >= http.StatusBadRequest {
		checkProblem(t, status, w.Header(), body)
		if !strings.HasPrefix(r.URL.Path, "/product") {
			return status
		}
	} else if media == "application/json" && (!json.Valid(body) || !utf8.Valid(body)) {
		t.Fatalf("%s %s: %d with a body that is no JSON: %q", r.Method, r.RequestURI, status, body)
	}
	var about struct{ Product, Name string }
	if json.Unmarshal(body, &about) == nil && strings.HasPrefix(r.URL.Path, "/product") {
		for _, product := range []string{about.Product, about.Name, purchase.DefaultProduct} {
			if product != "" {
				s.checkBooks(t, product, in)
			}
		}
	}
	return status
}

// elsewhere reports whether the path /product/NAME belongs to another route, or to no route.
func (s *fuzzedShop) elsewhere(name string) bool { return name == "" || name == "buy" }

func checkProblem(t *testing.T, status int, header http.Header, body []byte) {
	t.Helper()
	var p problem.Details
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || !json.Valid(body) || header.Get("Content-Type") != problem.ContentType {
		t.Fatalf("%d with %q, %q: %v", status, header.Get("Content-Type"), body, err)
	}
	if p.Status != status || p.Detail == "" || p.Title != http.StatusText(status) || p.RequestID == "" || p.Outcome == string(purchase.Sold) ||
		!slices.Contains(purchase.Outcomes(), purchase.Outcome(p.Outcome)) || strings.Contains(p.Detail, "\n") {
		t.Fatalf("not a clear problem: %s", body)
	}
	if wait, err := strconv.Atoi(header.Get("Retry-After")); status == http.StatusServiceUnavailable && (err != nil || wait < 1) {
		t.Fatalf("503 with Retry-After %q", header.Get("Retry-After"))
	}
}

// checkBooks checks stock and records. Requests come one at a time, so even the naive strategy is
// correct.
func (s *fuzzedShop) checkBooks(t *testing.T, product string, in input) {
	t.Helper()
	books, err := audit.Read(t.Context(), s.engine.DB, product)
	require.NoError(t, err, in)
	if books.Drift != 0 || books.Oversold != 0 || books.Duplicates != 0 || books.Leftover < 0 {
		t.Fatalf("%+v: books of %q %+v", in, product, books)
	}
}

// tidy keeps the shop small, so that the cost of an input does not depend on earlier ones.
func (s *fuzzedShop) tidy(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		"DELETE FROM purchase_history WHERE product_name <> 'apple'",
		"DELETE FROM product_part WHERE product_name <> 'apple'",
		"DELETE FROM product WHERE name <> 'apple'",
	} {
		require.NoError(t, s.engine.Admin.Exec(statement).Error)
	}
	s.fill(t)
}

func (s *fuzzedShop) fill(t *testing.T) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPut, "http://127.0.0.1/product/"+purchase.DefaultProduct, strings.NewReader(`{"amount": 20000}`))
	w := streamWriter{httptest.NewRecorder()}
	if s.handler.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Fatalf("restock: %d %s", w.Code, w.Body)
	}
}

// FuzzRoutes: no request causes a 500, a panic, an answer outside openapi.yaml, an error without a
// problem document, or a sale that stock and records do not show.
func FuzzRoutes(f *testing.F) {
	shop := newFuzzedShop(f)
	add := func(in input) {
		f.Add(in.route, in.strategy, in.method, in.path, in.query, in.key, in.contentType, in.host, in.other, in.body)
	}
	for i, route := range shop.routes {
		add(shop.plain(i))
		in := shop.plain(i)
		in.query = "product=apple&amount=2&purchaser=ann&after=0&limit=2"
		add(in)
		if route.Method+route.Path == "POST/product/buy" {
			in = shop.plain(i)
			in.key, in.body = "order-1", `{"product":"apple","purchaser":"ann","amount":2,"lock":"for-update"}`
			add(in)
			for strategy := range shop.strategies {
				add(input{route: uint8(i), strategy: uint8(strategy)})
			}
		}
	}
	none := uint8(len(shop.routes))
	add(input{route: none, method: "DELETE", path: "/product/a%2Fb?x", other: "gzip"})
	add(input{route: none, method: "GET", path: "//product/../live/", query: "%zz", host: "localhost:1"})
	add(input{route: none, method: "GET", path: "/metrics", query: "name[]=shop_buys_total", host: "example.com", other: "Bearer x"})
	f.Fuzz(func(t *testing.T, route, strategy uint8, method, path, query, key, contentType, host, other, body string) {
		shop.serve(t, input{route, strategy, method, path, query, key, contentType, host, other, body})
	})
}

// TestFuzzReachesRoutes: FuzzRoutes gets a 200 from each route, or the status in notOK, and each
// strategy sells.
func TestFuzzReachesRoutes(t *testing.T) {
	t.Parallel()
	shop := newFuzzedShop(t)
	for i, route := range shop.routes {
		want := cmp.Or(notOK[route.Method+" "+route.Path], http.StatusOK)
		expect.Equal(t, shop.serve(t, shop.plain(i)), want, route.Method, route.Path)
		for n, strategy := range shop.strategies {
			if in := shop.plain(i); route.Path == "/product/buy" {
				in.strategy = uint8(n)
				shop.fill(t)
				expect.Equal(t, shop.serve(t, in), http.StatusOK, strategy)
			}
		}
	}
}
