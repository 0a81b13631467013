// Package live shows a room of people what the shop does while it does it: a hub that
// folds the events of buyers into lanes, and a page that draws them.
//
//	buyers -> Hub.Publish -> lanes -> what has changed since, 20 times a second -> GET /live/events -> page
//	                      -> one bounded buffer a stream that asks for the events themselves
//
// A page is sent the state and no history: it sees what stands now, whenever it is opened,
// and one that is too slow sees fewer pictures of it and no wrong one. The invariant is that
// no buyer ever waits for a page.
package live

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
)

const (
	maxPages  = 64                    // streams at once
	maxLanes  = 256                   // the ones unchanged for longest go first
	buffered  = 4096                  // events that a stream may lag behind
	batchTime = 50 * time.Millisecond // what happens is sent together for so long: 20 messages a second at most
)

// A Hub keeps the lanes and wakes the pages when they change. It alone knows which lanes there
// are. Its methods may be called by any number of goroutines.
type Hub struct {
	exact func(strategy string) bool

	mu      sync.Mutex
	version uint64 // grows with each change
	lanes   map[laneKey]*lane
	stocked map[string]int64 // by product
	facts   map[string]fact
	pages   map[*page]struct{}
	closed  chan struct{}
}

type laneKey struct{ product, strategy string }

// A fact is something else that pages show, under its name.
type fact struct {
	value   json.RawMessage
	version uint64
}

// page is one stream. It alone knows what it has sent.
type page struct {
	hub    *Hub
	wake   chan struct{}      // holds one: there is something to send
	events chan history.Event // nil: it does not ask for them

	// Under the hub's mutex:
	dropped int64
	seen    uint64 // the version that was sent; 0: nothing yet
}

// NewHub returns an open hub. exact tells of a strategy whether the stock that a seller
// says is left tells which unit it sold; nil: never.
func NewHub(exact func(strategy string) bool) *Hub {
	h := &Hub{
		exact: exact, lanes: map[laneKey]*lane{}, stocked: map[string]int64{}, facts: map[string]fact{},
		pages: map[*page]struct{}{}, closed: make(chan struct{}),
	}
	h.Set("max_cells", maxCells) // a page draws a shelf that nobody has bought from yet
	return h
}

// Publish folds e into its lane, hands it to the streams that ask for events, and never
// waits for one.
func (h *Hub) Publish(e history.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case e.Kind == history.Restocked:
		h.stocked[e.Product] = e.Amount
		for key, l := range h.lanes {
			l.ended = l.ended || key.product == e.Product // what is shown stays until its next buyer comes
		}
	case e.Strategy != "":
		h.fold(e)
	}
	for p := range h.pages {
		if p.events == nil {
			continue
		}
		select {
		case p.events <- e:
		default:
			p.dropped++
		}
	}
	h.wake()
}

// sells: units were sold, so there is such a product.
func sells(e history.Event) bool { return e.Kind == history.Return && e.Amount > 0 }

// fold finds the event's lane, or makes one if the product is known to be there.
func (h *Hub) fold(e history.Event) {
	l := h.lanes[laneKey{e.Product, e.Strategy}]
	if l == nil {
		if _, restocked := h.stocked[e.Product]; !restocked && !sells(e) { // anybody may ask for what is not there
			return
		}
		l = h.add(e.Product, e.Strategy, h.stocked[e.Product])
	}
	if l.frozen {
		return
	}
	if l.ended {
		l.empty(h.stocked[e.Product])
	}
	l.take(e)
	h.changed(l)
}

// add makes a lane. Where there are too many the one that is unchanged for longest goes, but
// none of a run that is under way.
func (h *Hub) add(product, strategy string, stocked int64) *lane {
	if len(h.lanes) >= maxLanes {
		old := slices.DeleteFunc(slices.Collect(maps.Keys(h.lanes)), func(key laneKey) bool { return h.lanes[key].staged || h.lanes[key].frozen })
		if len(old) > 0 {
			delete(h.lanes, slices.MinFunc(old, func(a, b laneKey) int { return cmp.Compare(h.lanes[a].version, h.lanes[b].version) }))
			h.anew()
		}
	}
	l := newLane(product, strategy, stocked, h.exact != nil && h.exact(strategy))
	h.lanes[laneKey{product, strategy}] = l
	h.changed(l)
	return l
}

func (h *Hub) changed(l *lane) {
	h.version++
	l.version, l.drawn = h.version, nil
}

// anew has every page begin with the whole state again: something is no more.
func (h *Hub) anew() {
	for p := range h.pages {
		p.seen = 0
	}
}

func (h *Hub) wake() {
	for p := range h.pages {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// Stage clears the product's lanes and sets up empty ones, in which so many units are on
// sale, for the strategies that are about to sell it.
func (h *Hub) Stage(product string, strategies []string, stocked int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.lanes, func(key laneKey, _ *lane) bool { return key.product == product })
	h.anew()
	for _, strategy := range strategies {
		h.add(product, strategy, stocked).staged = true
	}
	h.wake()
}

// Freeze keeps a lane as it is, whatever is sold after its crowd, until Release.
func (h *Hub) Freeze(product, strategy string) Lane {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lanes[laneKey{product, strategy}]
	if l == nil { // nobody came
		l = h.add(product, strategy, h.stocked[product])
	}
	l.settle()
	l.frozen = true
	h.changed(l)
	h.wake()
	return l.picture()
}

// Release lets the product's lanes change again: each begins anew with its next buyer.
func (h *Hub) Release(product string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, l := range h.lanes {
		if key.product == product {
			l.staged, l.frozen, l.ended = false, false, true
		}
	}
}

// Set has every page know v, now and when it is opened later, under that name.
func (h *Hub) Set(name string, v any) {
	value, err := json.Marshal(v)
	if err != nil {
		panic("a fact cannot be written as JSON: " + err.Error()) // it is this program's own
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	h.facts[name] = fact{value, h.version}
	h.wake()
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

// join adds a page, which asks for events or not; nil when there are too many.
func (h *Hub) join(events bool) *page {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pages) >= maxPages {
		return nil
	}
	p := &page{hub: h, wake: make(chan struct{}, 1)}
	if events {
		p.events = make(chan history.Event, buffered)
	}
	p.wake <- struct{}{} // the state is the first message
	h.pages[p] = struct{}{}
	return p
}
