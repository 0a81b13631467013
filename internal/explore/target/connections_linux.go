package target

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/wire"
)

// connections are those of the programs. They know whether bytes are on their way. All methods
// are called with floor.mu held.
type connections struct {
	joined   map[*wire.Conn]bool // have logged in
	entering map[*wire.Conn]bool // log in
	greeted  map[*wire.Conn]bool // have logged in, and may not have been told yet
	touched  map[*wire.Conn]bool // have carried a command since floor.forget, see holdings.dirty
	ending   []*wire.Conn        // their programs have hung up, and the server may not be through with them
}

// leave notes that a connection has gone.
func (all *connections) leave(c *wire.Conn) {
	if all.joined[c] && c.ID != 0 {
		all.ending = append(all.ending, c)
	}
	delete(all.joined, c)
	delete(all.touched, c)
	delete(all.entering, c)
	delete(all.greeted, c)
}

// ended notes that the server is through with a connection.
func (all *connections) ended(c *wire.Conn) {
	all.ending = slices.DeleteFunc(all.ending, func(other *wire.Conn) bool { return other == c })
}

// of are the connections of a buyer's program.
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

// settled: no byte is on its way between the programs, the gates and the servers. sent says how
// much a program has sent to a socket of ours that has not come.
func (all *connections) settled(sent func(buyer int, s *wire.Socket) bool) bool {
	for _, conns := range []map[*wire.Conn]bool{all.joined, all.entering} {
		for c := range conns {
			if c.Program().Unread() > 0 || c.Server().Unread() > 0 || sent(c.Buyer, c.Program()) {
				return false
			}
		}
	}
	// A program that logs in may sleep while the server's part of it is on its way.
	for _, conns := range []map[*wire.Conn]bool{all.entering, all.greeted} {
		for c := range conns {
			if c.Program().Unacknowledged() > 0 {
				return false
			}
			delete(all.greeted, c)
		}
	}
	return true
}

// handedOver: the programs' kernels have all that was written to them.
func (all *connections) handedOver() bool {
	for c := range all.joined {
		if c.Program().Unacknowledged() > 0 {
			return false
		}
	}
	return true
}
