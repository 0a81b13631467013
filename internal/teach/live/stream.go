package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/web/problem"
)

// Events is the stream of GET /live/events: server-sent events (WHATWG HTML, 9.2) of two
// names. The first is "state" and has all that stands now:
//
//	{"whole": true, "lanes": [...], "facts": {...}}
//
// Those that follow have what has changed. "batch" has the events themselves and how many
// this stream has lost since the last one, {"events": [...], "dropped": n}, unless it was
// opened with ?events=no. 503 beyond 64 streams.
func (h *Hub) Events() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := h.join(r.URL.Query().Get("events") != "no")
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

// stream sends what is new until the page goes away or the hub is closed.
func (h *Hub) stream(w http.ResponseWriter, r *http.Request, flusher *http.ResponseController, p *page) {
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	pause := time.NewTimer(0) // between two messages
	defer pause.Stop()
	for {
		var err error
		select {
		case <-p.wake:
			select {
			case <-pause.C:
			case <-r.Context().Done():
				return
			case <-h.closed:
				return
			}
			err = h.send(w, p)
			pause.Reset(batchTime)
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

// send writes what the page has not seen.
func (h *Hub) send(w http.ResponseWriter, p *page) error {
	if s, some := h.since(p); some {
		if err := write(w, "state", s); err != nil {
			return err
		}
	}
	batch := []history.Event{}
	for len(batch) < buffered && len(p.events) > 0 { // nobody else takes from it
		batch = append(batch, <-p.events)
	}
	if dropped := h.missed(p); dropped > 0 || len(batch) > 0 {
		return write(w, "batch", struct {
			Events  []history.Event `json:"events"`
			Dropped int64           `json:"dropped"`
		}{batch, dropped})
	}
	return nil
}

func write(w http.ResponseWriter, name string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, body)
	return err
}
