package web

import (
	"cmp"
	linked "container/list"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections limits the open connections of a server. Each is an open file, and a shop that has used up its
// files cannot reach its database. A new connection beyond the limit replaces an idle one: the one that has
// waited longest for a request or for a delayed refusal. If all others are being served, the new connection
// is refused.
type connections struct {
	most int

	finishing atomic.Bool

	mu   sync.Mutex
	open map[net.Conn]*linked.Element // the connection's element in `idle`; nil: it is being served
	idle linked.List                  // elements of type waiting, the longest-waiting first
}

// waiting is an idle connection, which the server may end for a new one.
type waiting struct {
	conn   net.Conn
	wanted chan struct{} // closed to send the delayed refusal and end the connection; nil: it has no request
}

func newConnections(most int) *connections {
	return &connections{most: cmp.Or(most, math.MaxInt), open: map[net.Conn]*linked.Element{}}
}

func (c *connections) changed(conn net.Conn, state http.ConnState) {
	switch surplus := c.note(conn, state); {
	case surplus == nil:
	case surplus == conn:
		_ = conn.Close()
	default:
		// After CloseRead, the server still answers a request that has arrived by now, and then reads end of
		// file.
		if half, ok := surplus.(interface{ CloseRead() error }); !ok || half.CloseRead() != nil {
			_ = surplus.Close()
		}
	}
}

// lastRequests is how long clients may still send requests over open connections after the shop is
// told to stop.
const lastRequests = 250 * time.Millisecond

// finish marks each further answer as the last over its connection. It returns when no connection is open, or
// after lastRequests. It must precede http.Server.Shutdown, which closes idle connections even if a request
// is on its way.
func (c *connections) finish() {
	c.finishing.Store(true)
	c.hurry()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(lastRequests); c.count() > 0 && time.Now().Before(end); {
		<-every.C
	}
}

// hurry sends all delayed refusals now.
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

// spare is the argument of purchase.RememberReturns, which calls it when it delays a refusal. Until its
// caller calls `done`, the refusal may be sent early, for a new connection or when the shop stops.
func (c *connections) spare(conn net.Conn) (wanted <-chan struct{}, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := waiting{conn, make(chan struct{})}
	if _, known := c.open[conn]; !known || c.finishing.Load() { // the connection is being ended
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

// note stores the state of a connection. If there are too many, it returns one that the caller must close, or
// nil. It does not return one with a delayed refusal, which ends by itself after the refusal.
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
	default: // closed, or being ended
		delete(c.open, conn)
	}
	return surplus
}

// CheckConnections returns an error if this process cannot open enough files for the given number of
// connections.
func CheckConnections(most int) error {
	if can := affordable(most); can < most {
		return fmt.Errorf("--max-conns must be at most %d (got %d): this process can open only %d files; raise the limit with ulimit -n", can, most, openFiles())
	}
	return nil
}

// affordable returns the parameter `most`, but no more than three quarters of the number of files that this
// process may open. The other files are for connections to databases and lock servers, and for logs.
func affordable(most int) int {
	if files := openFiles(); files > 0 {
		return min(most, files/4*3)
	}
	return most
}
