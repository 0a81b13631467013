package target

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/wire"
)

// TestSnapshots: a transaction is at the stage taken only right after the first statement that follows BEGIN.
func TestSnapshots(t *testing.T) {
	for begin, want := range map[string]bool{
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE":  true,
		"start transaction isolation level\n\tserializable": true,
		"BEGIN":                                false,
		"BEGIN ISOLATION LEVEL READ COMMITTED": false,
		"SELECT 'BEGIN REPEATABLE READ'":       false,
	} {
		s, conn, other := snapshots{}, new(wire.Conn), new(wire.Conn)
		s.answered(other, "BEGIN ISOLATION LEVEL SERIALIZABLE")
		for i, text := range []string{begin, "SELECT 1", "SELECT 2", "COMMIT"} {
			s.answered(conn, text)
			if got := s[conn] == taken; got != (want && i == 1) {
				t.Errorf("%s: after %s: %v", begin, text, got)
			}
		}
		if s[other] != begun {
			t.Errorf("%s: another connection is at %d", begin, s[other])
		}
	}
}
