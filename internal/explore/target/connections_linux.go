package target

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/wire"
)

// connections holds the programs' connections. It knows whether bytes are on their way. All methods are
// called with gateTable.mu held.
type connections struct {
	joined   map[*wire.Conn]bool // logged in
	entering map[*wire.Conn]bool // logging in
	greeted  map[*wire.Conn]bool // logged in, but the program may not have received the answer
	touched  map[*wire.Conn]bool // carried a gated command since gateTable.forget, see holdings.left
	used     map[*wire.Conn]bool // carried a gated command that does not only set it up, see setUp
	ending   []*wire.Conn        // closed by their programs; the server may not have finished with them
}

// leave records that a connection has ended.
func (all *connections) leave(c *wire.Conn) {
	if all.joined[c] && c.ID != 0 {
		all.ending = append(all.ending, c)
	}
	delete(all.joined, c)
	delete(all.touched, c)
	delete(all.used, c)
	delete(all.entering, c)
	delete(all.greeted, c)
}

// ended records that the server has finished with a connection.
func (all *connections) ended(c *wire.Conn) {
	all.ending = slices.DeleteFunc(all.ending, func(other *wire.Conn) bool { return other == c })
}

// of returns the connections of a buyer's program.
func (all *connections) of(buyer int) (theirs []*wire.Conn) {
	for c := range all.joined {
		if c.Buyer == buyer {
			theirs = append(theirs, c)
		}
	}
	return theirs
}

// inOrder returns the connections that have logged in, ordered by buyer, protocol and number.
func (all *connections) inOrder() []*wire.Conn {
	return slices.SortedFunc(maps.Keys(all.joined), func(a, b *wire.Conn) int {
		return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.ID, b.ID))
	})
}

// settled reports whether no byte is on its way from the programs or between gates and servers. sent
// reports whether a program has sent bytes to one of our sockets that have not arrived.
func (all *connections) settled(sent func(buyer int, s *wire.Socket) bool) bool {
	for _, conns := range []map[*wire.Conn]bool{all.joined, all.entering} {
		for c := range conns {
			if sent(c.Buyer, c.Program()) || c.Program().Unread() > 0 || c.Server().Unread() > 0 {
				return false
			}
		}
	}
	return true
}

// welcomed reports whether the servers' part of each login has arrived, since a program may sleep while
// it is on its way. received reports whether a program has received everything.
func (all *connections) welcomed(received func(buyer int, s *wire.Socket) bool) bool {
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

// handedOver reports whether the programs' kernels have everything that was written to them.
func (all *connections) handedOver() bool {
	for c := range all.joined {
		if c.Program().Unacknowledged() > 0 {
			return false
		}
	}
	return true
}
