package main

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/goccy/go-yaml"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// heldUpBuy starts a buy that waits for a row which this test holds, and
// returns once it is in flight.
func heldUpBuy(t *testing.T, e *engine.Engine, base string) (bought <-chan response, letGo func()) {
	t.Helper()
	hold := e.DB.Begin()
	if err := hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error; err != nil {
		t.Fatal(err)
	}
	answer := make(chan response, 1)
	go func() { answer <- call(t, http.MethodGet, base+"/product/buy?lock=for-update", "", nil) }()
	eventually(t, "the buy is in flight", func() bool {
		return strings.Contains(string(call(t, http.MethodGet, base+"/metrics", "", nil).body), "shop_buys_in_flight 1")
	})
	return answer, func() {
		if err := hold.Rollback().Error; err != nil {
			t.Error(err)
		}
	}
}

// TestGracefulShutdown: on SIGTERM the built program accepts nobody any more,
// lets the buy in flight finish, and exits with 0.
func TestGracefulShutdown(t *testing.T) {
	e := enginetest.Local(t)
	serve := shopCommand(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--wait", "1m"}, serveArgs(e)...)...)
	base := served(t, serve)

	bought, letGo := heldUpBuy(t, e, base)
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "new connections are refused", func() bool {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	letGo()
	if r := <-bought; r.status != http.StatusOK {
		t.Errorf("the buy in flight: %d %s, want a sale", r.status, r.body)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// TestMaxInflight: one buy too many is told busy at once, and when to come back.
func TestMaxInflight(t *testing.T) {
	e := enginetest.Local(t)
	base := startServe(t, append(serveArgs(e), "--max-inflight", "1", "--wait", "1m")...)
	bought, letGo := heldUpBuy(t, e, base)
	r := call(t, http.MethodGet, base+"/product/buy", "", nil)
	wantProblem(t, r, http.StatusServiceUnavailable, "busy")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	letGo()
	if r := <-bought; r.status != http.StatusOK {
		t.Errorf("the buy in flight: %d %s", r.status, r.body)
	}
}

// TestAdmin: off loopback a restock needs the token; without one set, nobody can.
func TestAdmin(t *testing.T) {
	const token = "s3cret"
	for _, c := range []struct {
		name, set, sent string
		status          int
		says            string
	}{
		{"right token", token, "Bearer " + token, 200, ""},
		{"wrong token", token, "Bearer other", 401, "that is not the shop's SHOP_ADMIN_TOKEN"},
		{"no token sent", token, "", 401, "needs Authorization: Bearer"},
		{"no scheme", token, token, 401, "needs Authorization: Bearer"},
		{"none set", "", "Bearer ", 401, "started without SHOP_ADMIN_TOKEN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("SHOP_ADMIN_TOKEN", c.set)
			base := startServe(t, "--addr", "0.0.0.0:0")
			base = "http://127.0.0.1" + base[strings.LastIndex(base, ":"):]
			r := call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, http.Header{"Authorization": {c.sent}})
			if r.status != c.status {
				t.Errorf("%d %s, want %d", r.status, r.body, c.status)
			}
			if r.status == http.StatusUnauthorized {
				if p := wantProblem(t, r, http.StatusUnauthorized, "failed"); !strings.Contains(p.Detail, c.says) {
					t.Errorf("%q, want %q", p.Detail, c.says)
				}
			}
			if r := call(t, http.MethodGet, base+"/product/buy", "", nil); r.status != http.StatusOK {
				t.Errorf("a buy needs no token: %d %s", r.status, r.body)
			}
		})
	}
}

// TestAnnounce: the first line is an address that this machine can open, and those after it are
// for the others.
func TestAnnounce(t *testing.T) {
	const leader = "the leader opens http://127.0.0.1:8080/room/screen"
	for _, c := range []struct {
		addr, token, first string
		want, never        []string
	}{
		{"127.0.0.1:8080", "s3cret", "listening on http://127.0.0.1:8080", nil, []string{"phone", "leader"}},
		{"0.0.0.0:8080", "s3cret", "listening on http://127.0.0.1:8080", []string{"phone", leader}, []string{"0.0.0.0", "[::]", "127.0.0.1:8080/room\n"}},
		{"[::]:8080", "", "listening on http://127.0.0.1:8080", []string{"phone"}, []string{"leader", "[::]"}},
		{"192.0.2.7:8080", "", "listening on http://192.0.2.7:8080", []string{"phones open http://192.0.2.7:8080/room\n"}, []string{"leader"}},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		announce(&out, addr, c.token)
		if first, _, _ := strings.Cut(out.String(), "\n"); first != c.first {
			t.Errorf("%s: %q", c.addr, first)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %q: %s", c.addr, want, &out)
			}
		}
		for _, never := range c.never {
			if strings.Contains(out.String(), never) {
				t.Errorf("%s has %q: %s", c.addr, never, &out)
			}
		}
	}
}

// TestPortTaken: one line, exit 2.
func TestPortTaken(t *testing.T) {
	base := startServe(t)
	code, _, stderr := exitCode(t, "serve", "--addr", strings.TrimPrefix(base, "http://"))
	if code != exitHarness || !strings.Contains(stderr, "--addr") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d, %q; want %d and one line that names --addr", code, stderr, exitHarness)
	}
}

// TestOpenAPI: the document has the routes that exist, and no others.
func TestOpenAPI(t *testing.T) {
	var document struct {
		OpenAPI string                    `yaml:"openapi"`
		Paths   map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(document.OpenAPI, "3.1.") {
		t.Errorf("version %q, want 3.1", document.OpenAPI)
	}
	written := map[string]bool{}
	for path, methods := range document.Paths {
		for method := range methods {
			if method != "parameters" {
				written[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	shop := newShop(enginetest.Embedded(t), shopFlags{settings: lockstrategy.DefaultSettings(), maxInflight: 1}, slog.New(slog.DiscardHandler))
	shop.games = newGames()
	var routes gin.RoutesInfo = shop.handler(&net.TCPAddr{}, "").Routes()
	for _, r := range routes {
		route := r.Method + " " + strings.NewReplacer(":name", "{name}", ":id", "{id}").Replace(r.Path)
		if !written[route] {
			t.Errorf("%s is served and not in openapi.yaml", route)
		}
		delete(written, route)
	}
	for route := range written {
		t.Errorf("%s is in openapi.yaml and not served", route)
	}
}

// TestEvenNodes: an even number of Redlock nodes works, with a warning.
func TestEvenNodes(t *testing.T) {
	e := enginetest.Embedded(t)
	code, _, stderr := exitCode(t, "rush", "--strategy", "redlock", "--stock", "5", "--buyers", "10",
		"--db", "sqlite://"+t.TempDir()+"/shop.db", "--redlock", strings.Join(e.URLs.Redlock[:4], ","))
	if code != 0 || !strings.Contains(stderr, "warning: --redlock has 4 nodes: a majority is 3") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d, %q; want a sound rush and one line of warning", code, stderr)
	}
}

// TestSlowBody: a request whose body dawdles has no seat yet.
func TestSlowBody(t *testing.T) {
	base := startServe(t, "--max-inflight", "1")
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head := "POST /product/buy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
	if _, err := conn.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	// The server asks for the body when the handler reads it: the buy has begun.
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	if r := call(t, http.MethodGet, base+"/product/buy", "", nil); r.status != http.StatusOK {
		t.Errorf("a buy beside it: %d %s", r.status, r.body)
	}
}
