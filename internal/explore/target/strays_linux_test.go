package target

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire"
)

// TestStrays: behind a pooler that lends connections for a transaction, a lock of the session may be released on
// another connection, although no schedule shows that.
func TestStrays(t *testing.T) {
	for _, c := range []struct{ pooler, text, want string }{
		{"pgbouncer", "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_lock(1), through pgbouncer"},
		{"pgbouncer", "SELECT pg_advisory_xact_lock(1)", ""},
		{"", "SELECT pg_advisory_lock(1)", ""},
	} {
		s := &strays{taken: map[stray]*wire.Conn{}, pooler: func() string { return c.pooler }}
		s.answered(&gates.Op{Command: &wire.Command{Text: c.text}, Buyer: 1, Shown: c.text}, "pg_advisory_lock=''")
		if s.first != c.want {
			t.Errorf("%q, %s: %q, want %q", c.pooler, c.text, s.first, c.want)
		}
	}
	for settings, want := range map[string]bool{
		"pool_mode = transaction":            true,
		"shop = host=h pool_mode=statement":  true,
		"pool_mode = \"transaction\"":        true,
		"pool \"transaction\"":               true,
		";pool_mode = transaction":           false,
		"pool_mode = session":                false,
		"[pgbouncer]\nlisten_addr = 0.0.0.0": false,
	} {
		if got := lendsBriefly.MatchString(settings); got != want {
			t.Errorf("%q: %v, want %v", settings, got, want)
		}
	}
}
