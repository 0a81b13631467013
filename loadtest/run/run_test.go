package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// serve starts the built shop until the test ends. Its buyers do not give up on a slow machine.
func serve(t *testing.T, addr string) *url.URL {
	t.Helper()
	c := shoptest.Command(t, "serve", "--addr", addr, "--wait", "1m")
	line := shoptest.Serve(t, c)
	t.Cleanup(func() { _ = c.Wait() })
	u, err := url.Parse(line)
	if err != nil || u.Port() == "" {
		t.Fatalf("shop serve said %q: %v", line, err)
	}
	u.Host = "127.0.0.1:" + u.Port()
	return u
}

// wants runs the load test, and checks its exit code, its table, and the one line of an error.
func wants(t *testing.T, code int, says string, rows []string, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	got := run(t.Context(), args, &stdout, &stderr)
	if got != code || !strings.Contains(stderr.String(), says) || code != 0 && strings.Count(stderr.String(), "loadtest: ") != 1 {
		t.Errorf("%q: exit code %d, want %d and %q:\n%s%s", args, got, code, says, stdout.String(), stderr.String())
	}
	for _, row := range rows {
		if !regexp.MustCompile(`(?m)^ ?` + row + `$`).MatchString(stdout.String()) {
			t.Errorf("%q has no row %q:\n%s", args, row, stdout.String())
		}
	}
}

// sells is a row of a strategy that held: strategy, leftover, records, oversold, drift, p50, p99, requests/s.
const sells = `%s +0 +100 +0 +0 +\d+ +\d+ +\d+ +holds`

func TestVegeta(t *testing.T) {
	tier.Test(t, "starts the shop, and builds vegeta")
	testTool(t, "vegeta")
}

func TestK6(t *testing.T) {
	tier.Soak(t, "builds k6, which takes minutes; TestVegeta has the same judge")
	testTool(t, "k6")
}

func testTool(t *testing.T, tool string) {
	shop := serve(t, "127.0.0.1:0")
	wants(t, 0, "", []string{
		`none +\d+ +\d+ +[1-9]\d* +[1-9]\d* +\d+ +\d+ +\d+ +oversold`, fmt.Sprintf(sells, "redis"), fmt.Sprintf(sells, "conditional"), fmt.Sprintf(sells, "for-update"),
	}, "--tool", tool, "--url", shop.String(), "--strategy", "none,redis,conditional,for-update")
	wants(t, exitInconclusive, "inconclusive: conditional", nil, "--tool", tool, "--url", shop.String(), "--strategy", "conditional", "--buyers", "50")

	// A broken promise, a shop that acknowledges sales that it does not make, and one whose answers are lost.
	lying := httputil.NewSingleHostReverseProxy(shop)
	lying.ModifyResponse = func(r *http.Response) error {
		lock := r.Request.URL.Query().Get("lock")
		switch {
		case r.Request.URL.Path == "/strategies":
			text, err := io.ReadAll(r.Body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(text, []byte(`"rush":"oversold"`), []byte(`"rush":"holds"`)))), -1
			r.Header.Del("Content-Length")
			return err
		case lock == "for-update":
			panic(http.ErrAbortHandler) // closes the connection after the sale
		case lock == "conditional" && r.StatusCode == http.StatusConflict:
			r.StatusCode, r.Body, r.ContentLength = http.StatusOK, io.NopCloser(strings.NewReader(`{"id":1}`)), -1
			r.Header.Del("Content-Length")
		}
		return nil
	}
	front := httptest.NewServer(lying)
	defer front.Close()
	wants(t, exitBroken, "none: promised holds, seen oversold; conditional: promised holds, seen lost", nil,
		"--tool", tool, "--url", front.URL, "--strategy", "none,conditional")
	const unread = "for-update: 100 units asked for, 100 stocked: the demand was not above the stock" // 100 requests may not have arrived
	wants(t, exitInconclusive, "inconclusive: for-update", []string{unread},
		"--tool", tool, "--url", front.URL, "--strategy", "for-update")

	// A service without a list of strategies, which admits one buyer at a time, so its lock was not tested.
	narrow := httputil.NewSingleHostReverseProxy(shop)
	var turn sync.Mutex
	line := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/strategies" {
			http.NotFound(w, r)
			return
		}
		turn.Lock()
		defer turn.Unlock()
		narrow.ServeHTTP(w, r)
	}))
	defer line.Close()
	wants(t, exitInconclusive, "inconclusive: conditional", []string{"conditional: no two buys were in flight at once; played 4 times"},
		"--tool", tool, "--url", line.URL, "--strategy", "conditional", "--buyers", "20", "--stock", "10")
	wants(t, exitHarness, "name them with --strategy", nil, "--tool", tool, "--url", line.URL)
}

// TestErrors: each error is one line that says what to do.
func TestErrors(t *testing.T) {
	tier.Test(t, "starts the shop")
	t.Setenv("SHOP_ADMIN_TOKEN", "secret")
	shop := serve(t, "0.0.0.0:0").String()
	t.Setenv("SHOP_ADMIN_TOKEN", "")
	for says, args := range map[string][]string{
		"set SHOP_ADMIN_TOKEN":                              {"--url", shop, "--strategy", "none"},
		`unknown strategy "rediss" (did you mean "redis"?)`: {"--url", shop, "--strategy", "rediss"},
		"strategy etcd is unavailable at the target":        {"--url", shop, "--strategy", "etcd"},
		"start a shop with: shop serve":                     {"--url", "http://127.0.0.1:1"},
		"--url must be a URL":                               {"--url", "localhost:8080"},
		"choose from: k6, vegeta":                           {"--url", shop, "--tool", "jmeter"},
		"--stock must be between 1 and":                     {"--url", shop, "--stock", "0"},
		"list the flags with: -h":                           {"--burst"},
		`unknown argument "none"`:                           {"none"},
	} {
		wants(t, exitHarness, says, nil, args...)
	}
}
