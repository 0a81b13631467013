package live

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"github.com/oversell/oversell/internal/history"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

// serve serves the hub as the shop does, write time-out included.
func serve(t *testing.T, h *Hub) *httptest.Server {
	t.Helper()
	r := gin.New()
	h.Routes(r)
	server := httptest.NewUnstartedServer(r)
	server.Config.WriteTimeout = 100 * time.Millisecond
	server.Config.RegisterOnShutdown(h.Close)
	server.Start()
	t.Cleanup(func() {
		h.Close()
		server.Close()
	})
	return server
}

// stream opens a page's stream and returns its lines.
func stream(t *testing.T, server *httptest.Server) *bufio.Reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/live/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "retry: 1000\n" {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	return lines
}

type batch struct {
	Events  []history.Event `json:"events"`
	Dropped int64           `json:"dropped"`
}

func nextBatch(t *testing.T, lines *bufio.Reader) batch {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var b batch
			if err := json.Unmarshal([]byte(data), &b); err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
}

// TestEvents: every page gets every event in order, long after the server's
// write time-out.
func TestEvents(t *testing.T) {
	h := NewHub()
	server := serve(t, h)
	pages := []*bufio.Reader{stream(t, server), stream(t, server)}
	const events = 1000
	go func() {
		for i := range events {
			h.Publish(history.Event{Kind: history.Return, Amount: int64(i)})
			if i%100 == 0 {
				time.Sleep(10 * time.Millisecond) // spreads the events over more than the write time-out
			}
		}
	}()
	for _, page := range pages {
		for next := int64(0); next < events; {
			b := nextBatch(t, page)
			if b.Dropped != 0 {
				t.Fatalf("%d events dropped", b.Dropped)
			}
			for _, e := range b.Events {
				if e.Amount != next {
					t.Fatalf("event %d, want %d", e.Amount, next)
				}
				next++
			}
		}
	}
}

// TestSlowPage: a page that does not read loses events and learns how many;
// the publisher never waits.
func TestSlowPage(t *testing.T) {
	h := NewHub()
	p := h.join()
	for range buffered + 7 {
		h.Publish(history.Event{Kind: history.Call})
	}
	if got := len(p.events); got != buffered {
		t.Errorf("%d events kept, want %d", got, buffered)
	}
	w := httptest.NewRecorder()
	if err := send(w, p, nil); err != nil || !strings.Contains(w.Body.String(), `"dropped":7`) {
		t.Errorf("%v, %q; want 7 dropped", err, w.Body)
	}
	w = httptest.NewRecorder()
	if err := send(w, p, nil); err != nil || !strings.Contains(w.Body.String(), `"dropped":0`) {
		t.Errorf("%v, %q; want none since", err, w.Body)
	}
}

// TestTooManyPages: one page too many is told so, and a place that was left is free.
func TestTooManyPages(t *testing.T) {
	h := NewHub()
	server := serve(t, h)
	var last *page
	for range maxPages {
		last = h.join()
	}
	response, err := server.Client().Get(server.URL + "/live/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%s, want 503", response.Status)
	}
	h.leave(last)
	stream(t, server)
}

// TestShutdown: open pages do not hold up the shop's end.
func TestShutdown(t *testing.T) {
	h := NewHub()
	server := serve(t, h)
	lines := stream(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Fatalf("shutdown: %v", err)
	}
	if _, err := io.ReadAll(lines); err != nil {
		t.Errorf("the stream did not end cleanly: %v", err)
	}
	h.Close() // twice is fine
}

func TestPage(t *testing.T) {
	server := serve(t, NewHub())
	for path, contentType := range map[string]string{
		"/": "text/html; charset=utf-8", "/live/app.js": "text/javascript; charset=utf-8", "/live/style.css": "text/css; charset=utf-8",
	} {
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || len(body) == 0 || response.Header.Get("Content-Type") != contentType ||
			response.Header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %v %v", path, response.Header, err)
		}
		if strings.Contains(string(body), "innerHTML =") {
			t.Errorf("%s sets innerHTML: names are the buyers' own", path)
		}
	}
}
