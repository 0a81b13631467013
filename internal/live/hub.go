// Package live shows a room of people what the shop does while it does it: a
// hub that buyers publish events to, and a page that draws them.
//
//	buyers -> Hub.Publish -> one bounded buffer a page -> GET /live/events -> page
//
// It is not a record: a page that is too slow loses events, and learns how many. The
// invariant is that no buyer ever waits for a page.
package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/problem"
)

const (
	maxPages  = 64                    // streams at once
	buffered  = 4096                  // events that a page may lag behind
	batchTime = 50 * time.Millisecond // events are sent together for so long: 20 messages a second at most
	heartbeat = 15 * time.Second      // a comment, so that proxies keep the stream open
)

// A Hub hands events to the pages. Its methods may be called by any number of
// goroutines.
type Hub struct {
	open atomic.Int32 // pages; 0 makes Publish one load

	mu     sync.Mutex
	pages  map[*page]struct{}
	closed chan struct{}
}

type page struct {
	events  chan history.Event
	dropped atomic.Int64
}

// NewHub returns an open hub.
func NewHub() *Hub {
	return &Hub{pages: map[*page]struct{}{}, closed: make(chan struct{})}
}

// Publish hands e to every page and never waits.
func (h *Hub) Publish(e history.Event) {
	if h.open.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.pages {
		select {
		case p.events <- e:
		default:
			p.dropped.Add(1)
		}
	}
}

// Close ends every stream, now and later. http.Server.Shutdown would wait for
// them: register it with RegisterOnShutdown. It may be called twice.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.closed:
	default:
		close(h.closed)
	}
}

// join adds a page; nil when there are too many.
func (h *Hub) join() *page {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pages) >= maxPages {
		return nil
	}
	p := &page{events: make(chan history.Event, buffered)}
	h.pages[p] = struct{}{}
	h.open.Store(int32(len(h.pages)))
	return p
}

func (h *Hub) leave(p *page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pages, p)
	h.open.Store(int32(len(h.pages)))
}

// Events is the stream of GET /live/events: server-sent events (WHATWG HTML,
// 9.2) named "batch", each an object {"events": [...], "dropped": n} with n
// the events this page has lost since the last one. 503 beyond 64 pages.
func (h *Hub) Events() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := h.join()
		if p == nil {
			w.Header().Set("Retry-After", "10")
			problem.Reply(w, http.StatusServiceUnavailable, "failed", fmt.Sprintf("%d live pages are open, as many as the shop serves", maxPages))
			return
		}
		defer h.leave(p)
		stream := http.NewResponseController(w)
		if err := stream.SetWriteDeadline(time.Time{}); err != nil { // the server's is for answers, not for streams
			problem.Reply(w, http.StatusInternalServerError, "failed", "this server cannot stream")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		if _, err := fmt.Fprint(w, "retry: 1000\n\n"); err != nil || stream.Flush() != nil {
			return
		}
		h.stream(w, r, stream, p)
	})
}

// stream sends batches until the page goes away or the hub is closed.
func (h *Hub) stream(w http.ResponseWriter, r *http.Request, flusher *http.ResponseController, p *page) {
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	for {
		var err error
		select {
		case e := <-p.events:
			err = send(w, p, h.collect(r, p, e))
		case <-alive.C:
			_, err = fmt.Fprint(w, ": alive\n\n")
		case <-r.Context().Done():
			return
		case <-h.closed:
			return
		}
		if err != nil || flusher.Flush() != nil {
			return
		}
	}
}

// collect gathers what comes within batchTime of the first event.
func (h *Hub) collect(r *http.Request, p *page, first history.Event) []history.Event {
	batch := []history.Event{first}
	timer := time.NewTimer(batchTime)
	defer timer.Stop()
	for len(batch) < buffered {
		select {
		case e := <-p.events:
			batch = append(batch, e)
		case <-timer.C:
			return batch
		case <-r.Context().Done():
			return batch
		case <-h.closed:
			return batch
		}
	}
	return batch
}

func send(w http.ResponseWriter, p *page, batch []history.Event) error {
	body, err := json.Marshal(struct {
		Events  []history.Event `json:"events"`
		Dropped int64           `json:"dropped"`
	}{batch, p.dropped.Swap(0)})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: batch\ndata: %s\n\n", body)
	return err
}
