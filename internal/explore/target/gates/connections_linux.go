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

// Connections holds the programs' connections. It knows whether bytes are on their way.
type Connections struct {
	mu       *sync.Mutex
	pulse    *Pulse
	joined   map[*wire.Conn]bool // logged in
	entering map[*wire.Conn]bool // logging in
	greeted  map[*wire.Conn]bool // logged in, but the program may not have received the answer
	touched  map[*wire.Conn]bool // carried a gated command since Forget
	used     map[*wire.Conn]bool // carried a gated command other than one that sets it up, see isSetUp
	ending   []*wire.Conn        // closed by their programs; the server may not have finished with them
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

// carries records a command that has arrived on a connection, and reports whether it sets up a connection
// that was not used before.
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

// Ending returns the connections that the programs have closed, and with which the servers may not have finished.
func (all *Connections) Ending() []*wire.Conn {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Clone(all.ending)
}

// Ended records that the server has finished with a closed connection.
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

// Settled reports whether no byte is on its way from the programs or between gates and servers. The function sent
// reports whether a program has sent bytes to one of our sockets that have not arrived.
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

// Welcomed reports whether the servers' part of each login has arrived. Until then, a program may sleep although it
// will continue. The function received reports whether a program has received everything.
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

// HandedOver reports whether the programs' kernels have received everything that was sent to the programs.
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

// isSetUp reports whether a command, if it is among the first on its connection, only sets it up: it changes settings
// that no other connection notices.
func isSetUp(c *wire.Command) bool {
	_, sql := effect.DialectOf(c.Conn().Protocol)
	return sql && c.Gated && c.Effect == schedule.Local && setting.MatchString(c.Text)
}
