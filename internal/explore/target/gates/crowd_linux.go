package gates

import (
	"slices"
	"sync"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A Crowd counts the commands that are at the servers while the gates are open, as in a burst, and keeps the maximum.
// It has a lock of its own.
type Crowd struct {
	mu   sync.Mutex
	now  map[*wire.Command]bool
	most int
	left []*wire.Conn // connections that ended while their command was at the server
}

func (o *Crowd) enter(c *wire.Command) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now[c] = true
	o.most = max(o.most, len(o.now))
}

func (o *Crowd) leave(c *wire.Command) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.now, c)
}

// cut records that a connection has ended. The server may still execute its command.
func (o *Crowd) cut(c *wire.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for command := range o.now {
		if command.Conn() == c {
			delete(o.now, command)
			o.left = append(o.left, c)
		}
	}
}

// Gather starts a new count of the maximum.
func (o *Crowd) Gather() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most, o.left = len(o.now), nil
}

// Gathered returns the maximum, and the connections that ended while their command was at the server.
func (o *Crowd) Gathered() (most int, left []*wire.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.most, slices.Clone(o.left)
}
