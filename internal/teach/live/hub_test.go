package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/sse"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

// exactly: in these tests, every strategy's receipt identifies the sold unit.
func exactly(string) bool { return true }

// serve serves the hub as the shop does, including the write time-out.
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
	require.NoError(t, err)
	response, err := server.Client().Do(request)
	require.NoError(t, err)
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
	return next[batch](t, lines, "batch")
}

type message struct {
	Whole bool                       `json:"whole"`
	Lanes []Lane                     `json:"lanes"`
	Facts map[string]json.RawMessage `json:"facts"`
}

func nextState(t *testing.T, lines *bufio.Reader) message {
	t.Helper()
	return next[message](t, lines, "state")
}

func next[Message any](t *testing.T, lines *bufio.Reader, name string) (m Message) {
	t.Helper()
	for event := ""; ; {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if what, ok := strings.CutPrefix(line, "event: "); ok {
			event = strings.TrimSpace(what)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && event == name {
			require.NoError(t, json.Unmarshal([]byte(data), &m))
			return m
		}
	}
}

// TestEvents: every page gets every event in order, long after the server's
// write time-out.
func TestEvents(t *testing.T) {
	h := NewHub(exactly)
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

// TestSlowPage: a page that does not read loses events and learns how many. The publisher never
// blocks.
func TestSlowPage(t *testing.T) {
	h := NewHub(exactly)
	p := h.join(true)
	for range buffered + 7 {
		h.Publish(history.Event{Kind: history.Call})
	}
	expect.Equal(t, len(p.events), buffered, "events kept")
	w := httptest.NewRecorder()
	to, _ := sse.Open(w) // the error says that a recorder has no time-outs
	if err := p.send(to); err != nil || !strings.Contains(w.Body.String(), `"dropped":7`) {
		t.Errorf("%v, %.200q; want 7 dropped", err, w.Body)
	}
	h.Publish(history.Event{Kind: history.Call})
	w.Body.Reset()
	if err := p.send(to); err != nil || !strings.Contains(w.Body.String(), `"dropped":0`) {
		t.Errorf("%v, %q; want none since", err, w.Body)
	}
}

// TestTooManyPages: a page above the limit gets an error, and a freed place can be used again.
func TestTooManyPages(t *testing.T) {
	h := NewHub(exactly)
	server := serve(t, h)
	var last *page
	for range maxPages {
		last = h.join(true)
	}
	response, err := server.Client().Get(server.URL + "/live/events")
	require.NoError(t, err)
	defer response.Body.Close()
	expect.Equal(t, response.StatusCode, http.StatusServiceUnavailable, response.Status)
	last.leave()
	stream(t, server)
}

// TestShutdown: open pages do not delay the shop's end.
func TestShutdown(t *testing.T) {
	h := NewHub(exactly)
	server := serve(t, h)
	lines := stream(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, server.Config.Shutdown(ctx), "shutdown")
	expect.NoError(t, expect.ErrorOf(io.ReadAll(lines)), "the stream did not end cleanly")
	h.Close() // a second call is allowed
}

// TestFiles: each file of the page has a route.
func TestFiles(t *testing.T) {
	entries, err := web.ReadDir("web")
	if err != nil || len(entries) != len(files()) {
		t.Errorf("%d files and %d routes, %v", len(entries), len(files()), err)
	}
}

// TestSnapshot: a page that is opened at the end shows the same as a page that was open all the
// time.
func TestSnapshot(t *testing.T) {
	h := NewHub(exactly)
	server := serve(t, h)
	early := stream(t, server)
	if s := nextState(t, early); !s.Whole || len(s.Lanes) != 0 {
		t.Errorf("an empty hub begins with %+v", s)
	}
	crowd(h, "apple", "lossy", 10, 9, 8, 8, 7)
	h.Set("run", map[string]int{"number": 1})
	late := stream(t, server)
	s := nextState(t, late)
	if !s.Whole || len(s.Lanes) != 1 || string(s.Facts["run"]) != `{"number":1}` {
		t.Fatalf("the late page begins with %+v", s)
	}
	var seen Lane
	for seen.Records < 4 {
		for _, l := range nextState(t, early).Lanes {
			seen = l
		}
	}
	if want := s.Lanes[0]; !reflect.DeepEqual(seen, want) || want.Cells != "12"+"1......." || want.Twice != 1 || want.Records != 4 {
		t.Errorf("the early page has %+v, the late one %+v", seen, want)
	}
	h.Stage("apple", []string{"other"}, 5)
	for _, page := range []*bufio.Reader{early, late} {
		s := nextState(t, page)
		for !s.Whole { // events from before the stage was cleared
			s = nextState(t, page)
		}
		if len(s.Lanes) != 1 || s.Lanes[0].Strategy != "other" || s.Lanes[0].Cells != "....." {
			t.Errorf("after the stage was cleared: %+v", s)
		}
	}
}

// TestFrozen: sales after a crowd was judged do not change its lane. After the next restock the
// lane starts empty.
func TestFrozen(t *testing.T) {
	h := NewHub(exactly)
	crowd(h, "apple", "any", 3, 2, 1, 0)
	if l := h.Freeze("apple", "any"); l.Cells != "111" || l.Records != 3 {
		t.Errorf("%+v", l)
	}
	crowd(h, "apple", "any", 2, 1, 0)
	if l := h.Freeze("apple", "any"); l.Stocked != 3 || l.Records != 3 {
		t.Errorf("a frozen lane became %+v", l)
	}
	h.Release("apple")
	crowd(h, "apple", "any", 2, 1)
	if l := h.Freeze("apple", "any"); l.Stocked != 2 || l.Cells != "1." {
		t.Errorf("a released lane became %+v", l)
	}
}

// TestManyLanes: invented products do not fill the memory.
func TestManyLanes(t *testing.T) {
	h := NewHub(exactly)
	for i := range maxLanes + 50 {
		crowd(h, fmt.Sprint("product-", i), "any", 2, 1)
	}
	if len(h.lanes) != maxLanes || h.lanes[laneKey{fmt.Sprint("product-", maxLanes+49), "any"}] == nil {
		t.Errorf("%d lanes, the last one there: %v", len(h.lanes), h.lanes[laneKey{fmt.Sprint("product-", maxLanes+49), "any"}] != nil)
	}
}

// TestMadeUp: requests for missing products remove no lane, and no page receives the whole state
// again.
func TestMadeUp(t *testing.T) {
	h := NewHub(exactly)
	crowd(h, "apple", "any", 3, 2, 1)
	p := h.join(false)
	p.unseen()
	for i := range 2 * maxLanes {
		ask := history.Event{Kind: history.Call, At: time.Now(), Strategy: "any", Product: fmt.Sprint("nothing-", i), Purchaser: "bob", Amount: 1}
		h.Publish(ask)
		ask.Kind, ask.Amount, ask.Outcome = history.Return, 0, "failed"
		h.Publish(ask)
	}
	if s, some := p.unseen(); some || len(h.lanes) != 1 {
		t.Errorf("%d lanes, whole %v, sent %d", len(h.lanes), s.Whole, len(s.Lanes))
	}
	left := int64(4)
	h.Publish(history.Event{Kind: history.Return, At: time.Now(), Strategy: "any", Product: "pear", Purchaser: "ann", Outcome: "sold", Amount: 1, Left: &left})
	if h.lanes[laneKey{"pear", "any"}] == nil {
		t.Error("what was restocked before the shop's start and is sold has no lane")
	}
}

// TestStagedStay: lanes of a run under way are never dropped.
func TestStagedStay(t *testing.T) {
	h := NewHub(exactly)
	h.Stage("apple", []string{"any", "other"}, 3)
	h.Freeze("apple", "any")
	for i := range 2 * maxLanes {
		crowd(h, fmt.Sprint("product-", i), "any", 2, 1)
	}
	for _, strategy := range []string{"any", "other"} {
		if h.lanes[laneKey{"apple", strategy}] == nil {
			t.Errorf("the lane of %s has gone", strategy)
		}
	}
	h.Release("apple")
	for i := range 2 * maxLanes {
		crowd(h, fmt.Sprint("another-", i), "any", 2, 1)
	}
	if h.lanes[laneKey{"apple", "other"}] != nil || len(h.lanes) != maxLanes {
		t.Errorf("%d lanes, and one of a run that has ended is still there", len(h.lanes))
	}
}

// crowd restocks and sells one unit to each buyer. The parameter `left` is the remaining stock in
// each receipt.
func crowd(h *Hub, product, strategy string, stocked int64, left ...int64) {
	now := time.Now()
	h.Publish(history.Event{Kind: history.Restocked, At: now, Product: product, Amount: stocked})
	for i, l := range left {
		at, buyer := now.Add(time.Duration(i)*time.Millisecond), fmt.Sprint("buyer-", i)
		h.Publish(history.Event{Kind: history.Call, At: at, Strategy: strategy, Product: product, Purchaser: buyer, Amount: 1})
		h.Publish(history.Event{Kind: history.Return, At: at.Add(time.Millisecond), Strategy: strategy, Product: product, Purchaser: buyer, Outcome: "sold", Amount: 1, Left: &l})
	}
}
