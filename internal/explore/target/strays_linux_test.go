package target

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire"
)

// TestStrays: a session lock is reported if a pooler assigns connections only for a transaction. The release of the
// lock may reach another connection, although no schedule shows that.
func TestStrays(t *testing.T) {
	for _, c := range []struct{ pooler, text, want string }{
		{"pgbouncer", "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_lock(1), through pgbouncer"},
		{"pgbouncer", "SELECT pg_advisory_xact_lock(1)", ""},
		{"", "SELECT pg_advisory_lock(1)", ""},
	} {
		s := &strays{taken: map[stray]*wire.Conn{}, pooler: func(*wire.Conn) string { return c.pooler }}
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

// TestPgBouncer: the mode of the user's or the database's entry applies, otherwise the default.
func TestPgBouncer(t *testing.T) {
	const shared = "[databases]\n;old = pool_mode=transaction\nshop = host=h dbname=db pool_mode = session\nqueue = host=h pool_mode=transaction\n* = host=h\n"
	for _, c := range []struct {
		settings, database string
		want               bool
	}{
		{shared, "db", false},
		{shared, "queue", true},
		{shared, "other", false},
		{shared + "[pgbouncer]\npool_mode = transaction\n", "db", false},
		{shared + "[pgbouncer]\nlisten_port = 1\npool_mode = Statement\n", "other", true},
		{shared + "batch = dbname=db pool_mode=transaction", "db", false}, // the entries differ, so the default applies
		{shared + "[users]\nann = pool_mode=transaction\n", "db", true},
		{shared + "[users]\nbob = pool_mode=transaction\n", "db", false},
		{shared + "[users]\nann = pool_mode=session max_user_connections=2\n", "queue", false},
		{"[databases]\n* = host=h pool_mode=transaction\n", "any", true},
		{"", "db", false},
	} {
		if got := lendsInPgBouncer(c.settings, c.database, "ann"); got != c.want {
			t.Errorf("%s in\n%s: %v, want %v", c.database, c.settings, got, c.want)
		}
	}
}
