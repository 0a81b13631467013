package gates

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Connections holds the programs' connections. It knows whether bytes are in transit on them.
type Connections struct {
	mu       *sync.Mutex
	pulse    *Pulse
	joined   map[*wire.Conn]bool // logged in
	entering map[*wire.Conn]bool // logging in
	greeted  map[*wire.Conn]bool // logged in, but the program may not have received the server's answer yet
	touched  map[*wire.Conn]bool // carried a gated command (one that a gate can hold) since Forget
	used     map[*wire.Conn]bool // carried a gated command, other than one that only sets up the connection, see isSetUp
	ending   []*wire.Conn        // closed by their programs; their servers may not have noticed yet
}

// Touched reports whether a connection has carried a gated command since Forget.
func (all *Connections) Touched(c *wire.Conn) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.touched[c]
}

// Forget marks every connection as untouched.
func (all *Connections) Forget() {
	all.mu.Lock()
	defer all.mu.Unlock()
	clear(all.touched)
}

func (all *Connections) join(c *wire.Conn) {
	delete(all.entering, c)
	all.joined[c], all.greeted[c] = true, true
}

// carries records a command that has arrived on a connection. It reports whether the command sets up a new connection.
func (all *Connections) carries(c *wire.Command) (setsUp bool) {
	setsUp = isSetUp(c) && !all.used[c.Conn()]
	if c.Gated {
		all.touched[c.Conn()] = true
		all.used[c.Conn()] = !setsUp
	}
	return setsUp
}

func (all *Connections) leave(c *wire.Conn) {
	if all.joined[c] && c.ID != 0 {
		all.ending = append(all.ending, c)
	}
	delete(all.joined, c)
	delete(all.touched, c)
	delete(all.used, c)
	delete(all.entering, c)
	delete(all.greeted, c)
}

// Ending returns the connections that the programs have closed, but which the servers may not have ended yet.
func (all *Connections) Ending() []*wire.Conn {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Clone(all.ending)
}

// Ended records that the server has ended a closed connection.
func (all *Connections) Ended(c *wire.Conn) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.ending = slices.DeleteFunc(all.ending, func(other *wire.Conn) bool { return other == c })
	all.pulse.happened()
}

// Of returns the connections of a buyer's program.
func (all *Connections) Of(buyer int) (theirs []*wire.Conn) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for c := range all.joined {
		if c.Buyer == buyer {
			theirs = append(theirs, c)
		}
	}
	return theirs
}

// InOrder returns the connections that have logged in, ordered by buyer, protocol and number.
func (all *Connections) InOrder() []*wire.Conn {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.SortedFunc(maps.Keys(all.joined), func(a, b *wire.Conn) int {
		return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.ID, b.ID))
	})
}

// Settled reports whether no byte is in transit from the programs, or between gates and servers. The function `sent`
// reports whether a program has sent bytes that have not arrived at one of our sockets.
func (all *Connections) Settled(sent func(buyer int, s *wire.Socket) bool) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, conns := range []map[*wire.Conn]bool{all.joined, all.entering} {
		for c := range conns {
			if sent(c.Buyer, c.Program()) || c.Program().Unread() > 0 || c.Server().Unread() > 0 {
				return false
			}
		}
	}
	return true
}

// Welcomed reports whether the programs have received the servers' part of each login. Until then, a program may sleep
// although it will continue. The function `received` reports whether the program has received everything on a socket.
func (all *Connections) Welcomed(received func(buyer int, s *wire.Socket) bool) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, conns := range []map[*wire.Conn]bool{all.entering, all.greeted} {
		for c := range conns {
			if !received(c.Buyer, c.Program()) {
				return false
			}
			delete(all.greeted, c)
		}
	}
	return true
}

// HandedOver reports whether the kernels on the programs' side have received everything that was sent to the programs.
func (all *Connections) HandedOver() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for c := range all.joined {
		if c.Program().Unacknowledged() > 0 {
			return false
		}
	}
	return true
}

var setting = regexp.MustCompile(`(?i)^\s*SET\s`)

// isSetUp reports whether a command on a new connection only sets it up: it changes settings that no other connection
// notices.
func isSetUp(c *wire.Command) bool {
	_, sql := effect.DialectOf(c.Conn().Protocol)
	return sql && c.Gated && c.Effect == schedule.Local && setting.MatchString(c.Text)
}
