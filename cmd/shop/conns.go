package main

import (
	linked "container/list"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
)

// defaultConnections is the preset of --max-conns.
const defaultConnections = 10_000

// connections bounds those of a server: each is an open file, and a shop without files
// reaches no database. One more than allowed ends the one that has waited longest for a
// request; where all of them have one, it is refused.
type connections struct {
	most int

	finishing atomic.Bool

	mu   sync.Mutex
	open map[net.Conn]*linked.Element // nil: it has a request
	idle linked.List                  // of net.Conn, the longest first
}

func newConnections(most int) *connections {
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
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(lastRequests); c.count() > 0 && time.Now().Before(end); {
		<-every.C
	}
}

// lastAnswer tells the client, once finish was called.
func (c *connections) lastAnswer(g *gin.Context) {
	if c.finishing.Load() {
		g.Header("Connection", "close")
	}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// note keeps account, and returns a connection that is too many.
func (c *connections) note(conn net.Conn, state http.ConnState) (surplus net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits, known := c.open[conn]
	if waits != nil {
		c.idle.Remove(waits)
	}
	switch {
	case state == http.StateNew && len(c.open) >= c.most:
		longest := c.idle.Front()
		if longest == nil {
			return conn
		}
		surplus, _ = c.idle.Remove(longest).(net.Conn)
		delete(c.open, surplus)
		fallthrough
	case state == http.StateNew, known && state == http.StateIdle:
		c.open[conn] = c.idle.PushBack(conn)
	case known && state == http.StateActive:
		c.open[conn] = nil
	default: // closed, or a surplus one that has not noticed
		delete(c.open, conn)
	}
	return surplus
}

// affordable is how many connections of most this process has files for: a quarter is
// kept for servers and logs.
func affordable(most int) int {
	if files := openFiles(); files > 0 {
		return min(most, files/4*3)
	}
	return most
}

// checkConnections checks --max-conns.
func checkConnections(most int, given bool) error {
	if most < 1 || most > 1_000_000 {
		return fmt.Errorf("--max-conns is %d; 1 to 1000000 are allowed", most)
	}
	if can := affordable(most); given && can < most {
		return fmt.Errorf("--max-conns is %d, and this process may open %d files: %d are allowed; ulimit -n raises it", most, openFiles(), can)
	}
	return nil
}
