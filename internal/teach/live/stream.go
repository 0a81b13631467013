package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/teach/sse"
	"github.com/oversell/oversell/internal/web/problem"
)

// Events returns the stream of GET /live/events: server-sent events (WHATWG HTML, 9.2) of two
// kinds. The first event is "state" with the whole state:
//
//	{"whole": true, "lanes": [...], "facts": {...}}
//
// Later "state" events contain the changes. A "batch" event contains the shop's events, and how many of them
// this stream has lost since the last batch: {"events": [...], "dropped": n}. A stream that was opened with
// ?events=no gets no batches. While 64 streams are open, a request for another one gets the status 503.
func (h *Hub) Events() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := h.join(r.URL.Query().Get("events") != "no")
		if p == nil {
			w.Header().Set("Retry-After", "10")
			problem.Reply(w, http.StatusServiceUnavailable, "failed", fmt.Sprintf("%d live pages are open, as many as the shop serves", maxPages))
			return
		}
		defer p.leave()
		stream, err := sse.Open(w)
		if err != nil {
			problem.Reply(w, http.StatusInternalServerError, "failed", err.Error())
			return
		}
		p.stream(r, stream)
	})
}

// stream sends changes until the page has disconnected or the hub is closed.
func (p *page) stream(r *http.Request, to sse.Stream) {
	alive := time.NewTicker(sse.Heartbeat)
	defer alive.Stop()
	pause := time.NewTimer(0) // the minimum time between two messages
	defer pause.Stop()
	for err := to.Begin(); err == nil; {
		select {
		case <-p.wake:
			select {
			case <-pause.C:
			case <-r.Context().Done():
				return
			case <-p.hub.closed:
				return
			}
			err = p.send(to)
			pause.Reset(batchTime)
		case <-alive.C:
			err = to.Alive()
		case <-r.Context().Done():
			return
		case <-p.hub.closed:
			return
		}
	}
}

// send writes the changes that the page has not seen.
func (p *page) send(to sse.Stream) error {
	if s, some := p.unseen(); some {
		if err := to.Send("state", s); err != nil {
			return err
		}
	}
	batch := []history.Event{}
	for len(batch) < buffered && len(p.events) > 0 { // this goroutine is the only reader
		batch = append(batch, <-p.events)
	}
	if dropped := p.missed(); dropped > 0 || len(batch) > 0 {
		return to.Send("batch", struct {
			Events  []history.Event `json:"events"`
			Dropped int64           `json:"dropped"`
		}{batch, dropped})
	}
	return nil
}

func (p *page) leave() {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	delete(p.hub.pages, p)
}

// A state is a message: the whole state, or changes.
type state struct {
	Whole bool                       `json:"whole"` // whether it replaces the earlier state
	Lanes []json.RawMessage          `json:"lanes"`
	Facts map[string]json.RawMessage `json:"facts"`
}

// unseen returns the changes that the page has not seen, and whether there are any.
func (p *page) unseen() (s state, some bool) {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	s = state{Whole: p.seen == 0, Lanes: []json.RawMessage{}, Facts: map[string]json.RawMessage{}}
	for _, l := range slices.SortedFunc(maps.Values(p.hub.lanes), func(a, b *lane) int { return cmp.Compare(a.version, b.version) }) {
		if l.version <= p.seen {
			continue
		}
		if l.drawn == nil {
			drawn, err := json.Marshal(l.picture())
			if err != nil {
				panic("a lane cannot be written as JSON: " + err.Error()) // it contains only strings and numbers
			}
			l.drawn = drawn
		}
		s.Lanes = append(s.Lanes, l.drawn)
	}
	for name, f := range p.hub.facts {
		if f.version > p.seen {
			s.Facts[name] = f.value
		}
	}
	p.seen = max(p.hub.version, 1)
	return s, s.Whole || len(s.Lanes)+len(s.Facts) > 0
}

// missed returns how many events the page has lost since the last call.
func (p *page) missed() (dropped int64) {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	dropped, p.dropped = p.dropped, 0
	return dropped
}
