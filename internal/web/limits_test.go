package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestHosts: on a loopback address, every route refuses requests with a foreign Host, which another
// site's page would send.
func TestHosts(t *testing.T) {
	t.Parallel()
	base := startServe(t, engine.Config{}, named("Shop.example", "192.0.2.7"))
	addr := strings.TrimPrefix(base, "http://")
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	for _, c := range []struct {
		host string
		ok   bool
	}{
		{addr, true},
		{"127.0.0.1", true},
		{"127.9.9.9:80", true}, // as sent through a forwarded port
		{"localhost:" + port, true},
		{"LOCALHOST", true},
		{"a.localhost:1", true},
		{"[::1]:" + port, true},
		{"[::ffff:127.0.0.1]", true},
		{"shop.example:" + port, true},
		{"shop.example.", true},
		{"192.0.2.7", true},
		{"attacker.example:" + port, false},
		{"attacker.example", false},
		{"localhost.attacker.example", false},
		{"127.0.0.1.attacker.example:" + port, false},
		{"x.shop.example", false},
		{"0.0.0.0:" + port, false},
		{"192.0.2.8", false},
		{"2130706433", false}, // some resolvers read it as 127.0.0.1
		{"notlocalhost", false},
	} {
		for _, route := range []string{"PUT /product/apple", "GET /product/buy", "GET /", "GET /nowhere"} {
			method, path, _ := strings.Cut(route, " ")
			request, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(`{"amount":100}`))
			require.NoError(t, err)
			request.Host = c.host
			answer, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || (answer.StatusCode != http.StatusMisdirectedRequest) != c.ok {
				t.Errorf("%s to %s: %s %.200s, %v", route, c.host, answer.Status, body, err)
			}
			if !c.ok {
				webtest.WantProblem(t, response{Status: answer.StatusCode, Header: answer.Header, Body: body}, http.StatusMisdirectedRequest, "failed", "--allowed-host")
			}
		}
	}
	conn := dialed(t, addr)
	fmt.Fprint(conn, "GET /healthz HTTP/1.0\r\n\r\n")
	expect.Equal(t, statusOf(t, conn), http.StatusOK, "HTTP/1.0 without Host")
}

// TestHostsElsewhere: on other addresses a restock requires the token. Any Host is accepted, unless
// --allowed-host names some.
func TestHostsElsewhere(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]int{"": 200, "shop.example": 421} {
		var names []string
		if given != "" {
			names = []string{given}
		}
		base := startServe(t, engine.Config{}, elsewhere(""), named(names...))
		addr := "127.0.0.1" + base[strings.LastIndex(base, ":"):]
		for host, status := range map[string]int{"any.example": want, "127.0.0.1": 200} {
			conn := dialed(t, addr)
			fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
			expect.Equal(t, statusOf(t, conn), status, "--allowed-host", given, "Host", host)
		}
	}
}

// TestContentType: a restock must be JSON or have no content type.
func TestContentType(t *testing.T) {
	t.Parallel()
	base := startServe(t, engine.Config{})
	for said, status := range map[string]int{
		"":                                  200,
		"application/json":                  200,
		"Application/JSON; charset=utf-8":   200,
		"application/x-www-form-urlencoded": 415,
		"text/plain":                        415,
		"application/json, text/plain":      415,
		"application/jsonp":                 415,
		"json":                              415,
	} {
		header := http.Header{"Content-Type": {said}}
		if said == "" {
			header = nil
		}
		r := webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, header)
		expect.Equal(t, r.Status, status, said, string(r.Body))
		if status == http.StatusUnsupportedMediaType {
			webtest.WantProblem(t, r, status, "failed")
			expect.Equal(t, r.Header.Get("Accept"), "application/json", said, "Accept")
		}
	}
}

// TestSlowClients: a client that sends too slowly or too much gets an answer if possible, and is
// cut off in time.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	addr := strings.TrimPrefix(startServe(t, engine.Config{}), "http://")
	const head = "POST /product/buy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name   string
		sent   string
		then   string // sent after that, one byte a second
		status int    // 0: no answer
	}{
		{"nothing", "", "", 0},
		{"half a header", "GET /product/buy HTTP/1.1\r\nHost: local", "", 0},
		{"a header, a byte a second", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", long, 0},
		{"half a body", head + "Content-Length: 100\r\n\r\n{\"amount\"", "", 408},
		{"a body, a byte a second", head + "Content-Length: 300\r\n\r\n{\"purchaser\":\"", long, 408},
		{"half a chunk", head + "Transfer-Encoding: chunked\r\n\r\n10\r\n{", "", 408},
		{"half a restock", "PUT /product/apple HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", "", 408},
		{"a huge header", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "", 431},
		{"a huge request line", "GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "", 431},
		{"a huge body", head + fmt.Sprintf("Content-Length: %d\r\n\r\n", 1<<30) + strings.Repeat(" ", maxBody+1), "", 413},
		{"a huge body in chunks", head + "Transfer-Encoding: chunked\r\n\r\n20000\r\n" + strings.Repeat(" ", 0x20000), "", 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := dialed(t, addr)
			var sending sync.WaitGroup
			ended := make(chan struct{})
			sending.Go(func() {
				_, _ = io.WriteString(conn, c.sent) // the shop may close before it has read all
				every := time.NewTicker(time.Second)
				defer every.Stop()
				for i := range len(c.then) {
					select {
					case <-every.C:
						_, _ = io.WriteString(conn, c.then[i:i+1])
					case <-ended:
						return
					}
				}
			})
			start := time.Now()
			_ = conn.SetReadDeadline(start.Add(webtest.Patience))
			answer := bufio.NewReader(conn)
			_, _ = answer.Peek(1)
			took := time.Since(start)
			said, err := io.ReadAll(answer)
			close(ended)
			sending.Wait()
			if errors.Is(err, os.ErrDeadlineExceeded) { // a reset counts as an end, too
				t.Fatalf("it is not cut off in %s; it was told %.200s", webtest.Patience, said)
			}
			t.Logf("%s, %s: %.100q", took.Round(time.Millisecond), time.Since(start).Round(time.Millisecond), said)
			if c.status == http.StatusRequestEntityTooLarge && took > 9*time.Second {
				t.Errorf("%s: the rest of the body was waited for", took)
			}
			status := 0
			if _, err := fmt.Sscanf(string(said), "HTTP/1.1 %d", &status); err != nil && c.status != 0 || status != c.status {
				t.Errorf("%d, want %d: %.200q", status, c.status, said)
			}
		})
	}
}

// TestMaxConns: idle connections never exceed the limit, and a client with a request is served.
func TestMaxConns(t *testing.T) {
	t.Parallel()
	const most, held = 20, 60
	addr := strings.TrimPrefix(startServe(t, engine.Config{}, connected(most)), "http://")
	var holders []net.Conn
	for i := range held {
		conn := dialed(t, addr)
		if i%2 == 0 { // half of them have sent an earlier request
			fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if status := statusOf(t, conn); status != http.StatusOK {
				t.Fatalf("holder %d: %d", i, status)
			}
		}
		holders = append(holders, conn)
	}
	asks := dialed(t, addr)
	fmt.Fprint(asks, "GET /product/buy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	expect.Equal(t, statusOf(t, asks), http.StatusOK, "a client with a request")
	// The shop closes the connections that became idle first, so the last of these is still open.
	last := holders[held-2]
	var ended atomic.Int64
	for _, conn := range holders {
		if conn != last {
			go func() {
				_, _ = io.Copy(io.Discard, conn) // until the shop or this test ends it
				ended.Add(1)
			}()
		}
	}
	webtest.Eventually(t, "the surplus is cut off", func() bool { return ended.Load() >= held-most })
	fmt.Fprint(last, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	expect.Equal(t, statusOf(t, last), http.StatusOK, "a late holder")
}

// TestMaxConnsBusy: a connection with a request under way is not closed for a new client.
func TestMaxConnsBusy(t *testing.T) {
	t.Parallel()
	e := enginetest.Local(t)
	base := startServe(t, e.URLs, waitFor(time.Minute), connected(2))
	bought, letGo := webtest.HeldUpBuy(t, e.DB, base) // takes two connections: for the buy, and for metrics
	for range 5 {                                     // the previous connection counts until the shop has noticed its end
		webtest.Eventually(t, "somebody is answered beside it", func() bool {
			conn := dialed(t, strings.TrimPrefix(base, "http://"))
			fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(webtest.Patience))
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
		})
	}
	letGo()
	webtest.WantStatus(t, <-bought, http.StatusOK, "the buy in flight")
}

func dialed(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func statusOf(t *testing.T, conn net.Conn) int {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(webtest.Patience))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

func connected(most int) func(*setup) { return func(s *setup) { s.MaxConnections = most } }

// TestOutagesLogged: a server that is down is logged once, however many buyers find it down. No
// other refusal is logged.
func TestOutagesLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := gin.New()
	r.Use(logRequests(slog.New(slog.NewTextHandler(&out, nil))))
	for path, err := range map[string]error{
		"/redis": &purchase.Unavailable{Server: "redis", Err: errors.New("connection refused")},
		"/busy":  purchase.ErrBusy,
		"/gone":  &purchase.Unavailable{Server: "redis", Err: context.Canceled}, // the caller hung up
	} {
		r.GET(path, func(c *gin.Context) { purchase.WriteError(c, err) })
	}
	for _, path := range []string{"/busy", "/gone", "/redis", "/redis", "/busy", "/redis"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		expect.Equal(t, w.Code, http.StatusServiceUnavailable, path)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "server=redis") || !strings.Contains(got, "connection refused") {
		t.Errorf("the log has %q; want one warning of redis", got)
	}
}

type full struct{ came atomic.Int64 }

func (f *full) Buy(context.Context, purchase.Order) (purchase.Receipt, error) {
	f.came.Add(1)
	return purchase.Receipt{}, &purchase.Overloaded{RetryAfter: time.Hour}
}

type refusedClient struct {
	name    string
	conn    net.Conn
	answers *bufio.Reader
}

func (c *refusedClient) order(t *testing.T) {
	t.Helper()
	expect.NoError(t, expect.ErrorOf(fmt.Fprintf(c.conn, "POST /product/buy?lock=full&purchaser=%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", c.name)), c.name)
}

// wantBusy reads the answer that the shop is busy. The parameter `last` says whether it must be the
// last answer over this connection.
func (c *refusedClient) wantBusy(t *testing.T, last bool) {
	t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(webtest.Patience))
	answer, err := http.ReadResponse(c.answers, nil)
	require.NoError(t, err, c.name)
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Close != last || err != nil {
		t.Errorf("%s: %s, last %v, %v; want 503, last %v", c.name, answer.Status, answer.Close, err, last)
	}
}

// TestHeldUpGiveWay: delayed refusals that occupy all connections do not block a new client. The
// client that has waited longest is answered, and its connection ends. A stop does not wait for
// delayed refusals either.
func TestHeldUpGiveWay(t *testing.T) {
	t.Parallel()
	const most = 10
	settings := lockstrategy.DefaultSettings()
	settings.Wait = time.Hour
	shop := New(enginetest.Embedded(t), Config{Settings: settings, MaxInflight: 100, MaxConnections: most}, slog.New(slog.DiscardHandler))
	var till full
	shop.counter.Strategies["full"] = &till

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- shop.Serve(ctx, "127.0.0.1:0", "", in)
		_ = in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	addr := strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening+"http://")

	come := func(name string) *refusedClient {
		conn := dialed(t, addr)
		c := &refusedClient{name, conn, bufio.NewReader(conn)}
		c.order(t)
		c.wantBusy(t, false)
		return c
	}
	var early, newcomers []*refusedClient
	for i := range most {
		early = append(early, come(fmt.Sprintf("early-%d", i)))
	}
	for i, c := range early { // one after the other, so that they wait in this order
		c.order(t)
		webtest.Eventually(t, "it is there", func() bool { return till.came.Load() == int64(most+i+1) })
	}
	for i := range most {
		newcomers = append(newcomers, come(fmt.Sprintf("newcomer-%d", i)))
	}
	for _, c := range early {
		c.wantBusy(t, true)
	}
	for i, c := range newcomers {
		c.order(t)
		webtest.Eventually(t, "it is there", func() bool { return till.came.Load() == int64(3*most+i+1) })
	}
	stop()
	for _, c := range newcomers {
		c.wantBusy(t, true)
	}
	expect.NoError(t, <-ended, "the stop")
}
