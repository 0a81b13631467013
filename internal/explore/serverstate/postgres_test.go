package serverstate

import (
	"testing"
)

// TestClosed: in a cycle of waits, the session whose wait completed the cycle is the victim.
func TestClosed(t *testing.T) {
	for _, c := range []struct {
		name     string
		blockers map[int64][]int64
		known    map[int64]bool
		victim   int64
	}{
		{"nobody waits", nil, nil, 0},
		{"one waits", map[int64][]int64{1: {2}}, nil, 0},
		{"a line", map[int64][]int64{1: {2, 3}, 2: {3}}, map[int64]bool{2: true}, 0},
		{"two, the second is new", map[int64][]int64{1: {2}, 2: {1}}, map[int64]bool{1: true}, 2},
		{"two, the first is new", map[int64][]int64{1: {2}, 2: {1}}, map[int64]bool{2: true}, 1},
		{"three, and one beside them", map[int64][]int64{1: {2}, 2: {3}, 3: {1}, 4: {1}}, map[int64]bool{1: true, 2: true}, 3},
	} {
		d := &postgresConnections{known: c.known}
		if victim, found := d.closed(c.blockers); victim != c.victim || found != (c.victim != 0) {
			t.Errorf("%s: %d, %t; want %d", c.name, victim, found, c.victim)
		}
	}
}
