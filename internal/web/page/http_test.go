package page_test

import (
	"embed"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/web/page"
)

//go:embed testdata
var files embed.FS

// TestFile: a file is served with the policy and its content type, and is revalidated each time.
func TestFile(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.GET("/", page.File(files, "testdata/page.html"))
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	for name, want := range map[string]string{
		"Content-Security-Policy": page.Policy, "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-cache", "Content-Type": "text/html; charset=utf-8",
	} {
		expect.Equal(t, w.Header().Get(name), want, name)
	}
	if w.Code != http.StatusOK || w.Body.String() != "<!doctype html>\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// TestCaller: one machine is one caller, whatever its headers say.
func TestCaller(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:1": "", "[::1]:1": "", "[::ffff:127.0.0.1]:1": "",
		"192.168.1.5:1": "192.168.1.5", "[::ffff:192.168.1.5]:1": "192.168.1.5",
		"[2001:db8::1]:1": "2001:db8::/64", "[2001:db8::2]:1": "2001:db8::/64", "[fe80::1%eth0]:1": "fe80::/64",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = addr
		r.Header.Set("X-Forwarded-For", "203.0.113.7")
		expect.Equal(t, page.Caller(r), want, addr)
	}
}
