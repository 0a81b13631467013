package web

import (
	linked "container/list"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections bounds those of a server: each is an open file, and a shop without files
// reaches no database. One more than allowed ends the one that has waited longest, for a
// request or for a refusal that is held up; where all others are served, it is refused.
type connections struct {
	most int

	finishing atomic.Bool

	mu   sync.Mutex
	open map[net.Conn]*linked.Element // nil: it is served
	idle linked.List                  // of waiting, the longest first
}

// waiting is a connection that can be ended.
type waiting struct {
	conn   net.Conn
	wanted chan struct{} // closed to end it; nil: it has no request
}

func newConnections(most int) *connections {
	if most == 0 {
		most = math.MaxInt
	}
	return &connections{most: most, open: map[net.Conn]*linked.Element{}}
}

// changed is http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	switch surplus := c.note(conn, state); {
	case surplus == nil:
	case surplus == conn:
		_ = conn.Close()
	default:
		// A request that has come meanwhile is answered; its goroutine then finds the end.
		if half, ok := surplus.(interface{ CloseRead() error }); !ok || half.CloseRead() != nil {
			_ = surplus.Close()
		}
	}
}

// lastRequests is how long clients may still send a request over a connection that they have,
// when the shop is told to stop.
const lastRequests = 250 * time.Millisecond

// finish has each answer say that it is the last over its connection, and returns when none is
// open, or after lastRequests. http.Server.Shutdown closes what waits for a request, even
// if one is on its way.
func (c *connections) finish() {
	c.finishing.Store(true)
	c.hurry()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(lastRequests); c.count() > 0 && time.Now().Before(end); {
		<-every.C
	}
}

// hurry has every request answered that is held up.
func (c *connections) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for element := c.idle.Front(); element != nil; {
		w, _ := element.Value.(waiting)
		next := element.Next()
		if w.wanted != nil {
			close(w.wanted)
			c.idle.Remove(element)
			c.open[w.conn] = nil
		}
		element = next
	}
}

// spare is for purchase.RememberReturns: until done, the connection's request may be had
// answered for a newcomer, and is when the shop is told to stop.
func (c *connections) spare(conn net.Conn) (wanted <-chan struct{}, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := waiting{conn, make(chan struct{})}
	if _, known := c.open[conn]; !known || c.finishing.Load() { // a surplus one that has asked meanwhile
		close(w.wanted)
		return w.wanted, func() {}
	}
	c.open[conn] = c.idle.PushBack(w)
	return w.wanted, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if element := c.open[conn]; element != nil {
			c.idle.Remove(element)
			c.open[conn] = nil
		}
	}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// note keeps account, and returns a connection that is too many, unless its request ends it.
func (c *connections) note(conn net.Conn, state http.ConnState) (surplus net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, known := c.open[conn]
	if element != nil {
		c.idle.Remove(element)
	}
	switch {
	case state == http.StateNew && len(c.open) >= c.most:
		longest := c.idle.Front()
		if longest == nil {
			return conn
		}
		w, _ := c.idle.Remove(longest).(waiting)
		delete(c.open, w.conn)
		if surplus = w.conn; w.wanted != nil {
			close(w.wanted)
			surplus = nil
		}
		fallthrough
	case state == http.StateNew, known && state == http.StateIdle:
		c.open[conn] = c.idle.PushBack(waiting{conn: conn})
	case known && state == http.StateActive:
		c.open[conn] = nil
	default: // closed, or a surplus one that has not noticed
		delete(c.open, conn)
	}
	return surplus
}

// Affordable returns how many of most connections this process has files for: a quarter
// of its files is kept for servers and logs.
func Affordable(most int) int {
	if files := OpenFiles(); files > 0 {
		return min(most, files/4*3)
	}
	return most
}
