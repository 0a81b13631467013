package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/purchase"
)

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
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "server=redis") || !strings.Contains(got, "connection refused") {
		t.Errorf("the log has %q; want one warning of redis", got)
	}
}
