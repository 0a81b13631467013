package web

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/live/runs"
	"github.com/oversell/oversell/internal/teach/play/host"
	"github.com/oversell/oversell/internal/web/page"
	"github.com/oversell/oversell/internal/web/webtest"
)

type idle struct{ runs.Sender }

func (idle) Faults() []runs.Fault { return nil }

// TestMaxInflight: a buy above the limit is told at once that the shop is busy, and when to come
// back.
func TestMaxInflight(t *testing.T) {
	t.Parallel()
	e := enginetest.Local(t)
	base := startServe(t, e.URLs, waitFor(time.Minute), func(s *setup) { s.MaxInflight = 1 })
	bought, letGo := webtest.HeldUpBuy(t, e.DB, base)
	r := webtest.Call(t, http.MethodGet, base+"/product/buy", "", nil)
	webtest.WantProblem(t, r, http.StatusServiceUnavailable, "busy")
	if r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	letGo()
	webtest.WantStatus(t, <-bought, http.StatusOK, "the buy in flight")
}

// TestAdmin: on an address other than loopback a restock requires the token. If no token is set,
// every restock is refused.
func TestAdmin(t *testing.T) {
	t.Parallel()
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
			base := startServe(t, engine.Config{}, elsewhere(c.set))
			base = "http://127.0.0.1" + base[strings.LastIndex(base, ":"):]
			r := webtest.Call(t, http.MethodPut, base+"/product/apple", `{"amount":7}`, http.Header{"Authorization": {c.sent}})
			expect.Equal(t, r.Status, c.status, string(r.Body))
			if r.Status == http.StatusUnauthorized {
				webtest.WantProblem(t, r, http.StatusUnauthorized, "failed", c.says)
			}
			webtest.WantStatus(t, webtest.Call(t, http.MethodGet, base+"/product/buy", "", nil), http.StatusOK, "a buy needs no token")
		})
	}
}

// TestAnnounce: the first line is an address that this machine can open. The following lines are for
// other machines.
func TestAnnounce(t *testing.T) {
	t.Parallel()
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
		require.NoError(t, err)
		var out strings.Builder
		announce(&out, addr, c.token)
		if first, _, _ := strings.Cut(out.String(), "\n"); first != c.first {
			t.Errorf("%s: %q", c.addr, first)
		}
		for _, want := range c.want {
			expect.Contains(t, out.String(), want, c.addr)
		}
		for _, never := range c.never {
			if strings.Contains(out.String(), never) {
				t.Errorf("%s has %q: %s", c.addr, never, &out)
			}
		}
	}
}

// TestSlowBody: a request does not count against MaxInflight while its body arrives.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	base := startServe(t, engine.Config{}, func(s *setup) { s.MaxInflight = 1 })
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	head := "POST /product/buy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
	require.NoError(t, expect.ErrorOf(conn.Write([]byte(head))))
	// The server requests the body when the handler reads it: the buy has begun.
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	webtest.WantStatus(t, webtest.Call(t, http.MethodGet, base+"/product/buy", "", nil), http.StatusOK, "a buy beside it")
}

func allRoutes(t *testing.T) *gin.Engine {
	t.Helper()
	c := Config{Settings: lockstrategy.DefaultSettings(), MaxInflight: 1, Games: &host.Host{}, Sender: idle{}}
	return New(enginetest.Embedded(t), c, slog.New(slog.DiscardHandler)).handler(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, "")
}

// TestOpenAPI: the document lists exactly the existing routes.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	if !strings.HasPrefix(string(openAPI), "openapi: 3.1.") {
		t.Errorf("the document begins with %.20q, want version 3.1", openAPI)
	}
	written := documented(t)
	for _, r := range allRoutes(t).Routes() {
		route := r.Method + " " + strings.NewReplacer(":name", "{name}", ":id", "{id}").Replace(r.Path)
		if written[route] == nil {
			t.Errorf("%s is served and not in openapi.yaml", route)
		}
		delete(written, route)
	}
	for route := range written {
		if !strings.HasPrefix(route, "PARAMETERS ") { // parameters of all methods of a path
			t.Errorf("%s is in openapi.yaml and not served", route)
		}
	}
}

// A reference in a page is the address of a script or a style.
var reference = regexp.MustCompile(`(?:src|href)="(/[^"]*\.(?:js|css))"`)

// TestPages: a page's files exist, load nothing from other hosts, and write no HTML.
func TestPages(t *testing.T) {
	t.Parallel()
	handler := allRoutes(t)
	get := func(path string) string {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil))
		if w.Code != http.StatusOK || w.Body.Len() == 0 || w.Header().Get("Content-Security-Policy") != page.Policy {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		return strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "")
	}
	pages := []string{"/", "/room", "/room/screen", "/play"}
	files := slices.Clone(pages)
	for _, r := range handler.Routes() {
		if strings.HasSuffix(r.Path, ".js") || strings.HasSuffix(r.Path, ".css") {
			files = append(files, r.Path)
		}
	}
	for _, file := range files {
		for _, no := range []string{"http:", "https:", "innerHTML =", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "<style", " style=\"", "onclick=\""} {
			if strings.Contains(get(file), no) {
				t.Errorf("%s has %s", file, no)
			}
		}
	}
	for _, path := range pages {
		used := reference.FindAllStringSubmatch(get(path), -1)
		if len(used) == 0 {
			t.Errorf("%s loads no file", path)
		}
		for _, u := range used {
			get(u[1])
		}
	}
}

// TestWarnOfReplicas: a lock that waits for more replicas than there are causes a warning.
func TestWarnOfReplicas(t *testing.T) {
	t.Parallel()
	e := enginetest.Redis(t, topology.Sentinel) // a primary and two replicas
	for wait, want := range map[int]string{0: "", 2: "", 3: "a primary of Redis has 2 replicas now; until it has 3, buyers of redis, "} {
		if got := strings.Join(Warnings(t.Context(), e, wait), "; "); got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("--redis-wait %d: %q, want %q", wait, got, want)
		}
	}
}
