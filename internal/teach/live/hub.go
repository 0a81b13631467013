// Package live shows an audience the shop's current activity. A hub turns the events of buyers into lanes,
// and a page draws the lanes. A lane is one strategy that sells one product.
//
//	buyers -> Hub.Publish -> lanes -> changes, 20 times a second -> GET /live/events -> page
//	                      -> one bounded buffer for each stream that asks for the events themselves
//
// A page receives the current state and no history. It may be opened at any time. A page that is
// too slow sees fewer updates, but each of them is correct. A buyer never waits for a page.
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
	maxPages  = 64                    // maximum number of streams
	maxLanes  = 256                   // beyond that, the hub drops the lane that has not changed for longest
	buffered  = 4096                  // events that a stream may lag behind
	batchTime = 50 * time.Millisecond // changes within this time are sent together: at most 20 messages a second
)

// A Hub keeps the lanes and wakes the pages when they change. Its methods may be called by any
// number of goroutines.
type Hub struct {
	exact func(strategy string) bool

	mu      sync.Mutex
	version uint64 // grows with each change
	lanes   map[laneKey]*lane
	stocked map[string]int64 // units put on sale, by product
	facts   map[string]fact
	pages   map[*page]struct{}
	closed  chan struct{}
}

type laneKey struct{ product, strategy string }

// A fact is a value that pages show in addition to the lanes.
type fact struct {
	value   json.RawMessage
	version uint64
}

// page is one open stream.
type page struct {
	hub    *Hub
	wake   chan struct{}      // holds a value if there is something to send
	events chan history.Event // nil: the page does not ask for events

	// Guarded by the hub's mutex:
	dropped int64
	seen    uint64 // the version that was sent; 0: none
}

// NewHub returns an open hub. The function `exact` reports whether a receipt of the strategy states the exact
// remaining stock, which identifies the sold unit. Nil means that it returns false for every strategy.
func NewHub(exact func(strategy string) bool) *Hub {
	h := &Hub{
		exact: exact, lanes: map[laneKey]*lane{}, stocked: map[string]int64{}, facts: map[string]fact{},
		pages: map[*page]struct{}{}, closed: make(chan struct{}),
	}
	h.Set("max_cells", maxCells) // so that a page can draw a shelf, the units as cells, before the first sale
	return h
}

// Publish adds e to its lane and passes it to the streams that ask for events. It never blocks.
func (h *Hub) Publish(e history.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case e.Kind == history.Restocked:
		h.stocked[e.Product] = e.Amount
		for key, l := range h.lanes {
			l.ended = l.ended || key.product == e.Product // the lane shows the ended sale until its next buyer comes
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

// sells reports whether the event is a sale. A sale shows that the product exists.
func sells(e history.Event) bool { return e.Kind == history.Return && e.Amount > 0 }

// fold adds the event to its lane. It creates the lane if the product is known to exist.
func (h *Hub) fold(e history.Event) {
	l := h.lanes[laneKey{e.Product, e.Strategy}]
	if l == nil {
		if _, restocked := h.stocked[e.Product]; !restocked && !sells(e) { // a client may ask for a product that does not exist
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

// add creates a lane. If there are too many, it drops the lane that has not changed for longest, but never a
// lane of a running burst of buyers (Stage).
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

// anew makes every page receive the whole state again, since a lane was removed.
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

// Stage replaces the product's lanes by an empty lane for each strategy that is about to sell the
// product, with the given stock.
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

// Freeze returns a lane and keeps it unchanged until Release, even if more units are sold.
func (h *Hub) Freeze(product, strategy string) Lane {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lanes[laneKey{product, strategy}]
	if l == nil { // no buyer has come yet
		l = h.add(product, strategy, h.stocked[product])
	}
	l.settle()
	l.frozen = true
	h.changed(l)
	h.wake()
	return l.picture()
}

// Release lets the product's lanes change again. Each lane starts empty with its next buyer.
func (h *Hub) Release(product string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, l := range h.lanes {
		if key.product == product {
			l.staged, l.frozen, l.ended = false, false, true
		}
	}
}

// Set sends the value v under that name to every open page, and to each page that opens later.
func (h *Hub) Set(name string, v any) {
	value, err := json.Marshal(v)
	if err != nil {
		panic("a fact cannot be written as JSON: " + err.Error()) // only a mistake in this program can cause this
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	h.facts[name] = fact{value, h.version}
	h.wake()
}

// Close ends every stream. A stream that opens later ends at once. http.Server.Shutdown would wait
// for streams, so register Close with RegisterOnShutdown. It may be called twice.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.closed:
	default:
		close(h.closed)
	}
}

// join adds a page, with or without a stream of events. It returns nil if there are too many pages.
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
	p.wake <- struct{}{} // to send the first message, the whole state
	h.pages[p] = struct{}{}
	return p
}
