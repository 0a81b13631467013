package target

import (
	"slices"
	"sync"

	"github.com/oversell/oversell/internal/explore/wire"
)

// An overlap counts the commands at the servers while the gates are open, and their maximum.
type overlap struct {
	mu   sync.Mutex
	now  map[*wire.Command]bool
	most int
	left []*wire.Conn // connections that ended with a command at its server
}

func (o *overlap) enter(c *wire.Command) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now[c] = true
	o.most = max(o.most, len(o.now))
}

func (o *overlap) leave(c *wire.Command) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.now, c)
}

// cut records that a connection has ended. The server may still execute its command.
func (o *overlap) cut(c *wire.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for command := range o.now {
		if command.Conn() == c {
			delete(o.now, command)
			o.left = append(o.left, c)
		}
	}
}

// gather starts a new count of the maximum.
func (o *overlap) gather() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most, o.left = len(o.now), nil
}

// gathered returns the maximum, and the connections that ended with a command at its server.
func (o *overlap) gathered() (most int, left []*wire.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.most, slices.Clone(o.left)
}
