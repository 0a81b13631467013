package effect_test

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// TestPostgres: which statements wait at the gate outside a transaction (a), inside one (b), and
// inside one above READ COMMITTED (c).
func TestPostgres(t *testing.T) {
	for _, c := range []struct {
		sql    string
		effect schedule.Effect
		waits  string
	}{
		{"SELECT stock FROM items", schedule.Reads, "abc"},
		{"SELECT stock FROM items FOR NO KEY UPDATE", schedule.Writes, "abc"},
		{"SELECT stock FROM items FOR KEY SHARE", schedule.Writes, "abc"},
		{"SELECT 'FOR UPDATE', E'\\'', $a$;$a$ /* /* */ ; */ FROM items", schedule.Reads, "abc"},
		{"SELECT * INTO x FROM items", schedule.Writes, "abc"},
		{"SELECT set_config('a.b', '1', false)", schedule.Writes, "abc"},
		{"WITH a AS (UPDATE items SET stock = 0 RETURNING *) SELECT * FROM a", schedule.Writes, "abc"},
		{"WITH a AS (SELECT 1) SELECT * FROM a", schedule.Reads, "abc"},
		{"VALUES (f(1))", schedule.Writes, "abc"},
		{"VALUES (1)", schedule.Reads, "abc"},
		{"TABLE items", schedule.Reads, "abc"},
		{"TABLE items FOR UPDATE", schedule.Writes, "abc"},
		{"EXPLAIN ANALYZE SELECT 1", schedule.Writes, "abc"},
		{"MERGE INTO items USING x ON true WHEN MATCHED THEN DELETE", schedule.Writes, "abc"},
		{"NOTIFY a", schedule.Writes, "abc"},
		{"SELECT pg_notify('a', 'b')", schedule.Writes, "abc"},
		{"LISTEN a", schedule.Writes, "abc"},
		{"UNLISTEN *", schedule.Writes, "abc"},
		{"DISCARD ALL", schedule.Writes, "abc"},
		{"DEALLOCATE a", schedule.Writes, "bc"},
		{"SET search_path = a, b", schedule.Local, ""},
		{"SET ROLE a", schedule.Local, ""},
		{"SET LOCAL lock_timeout = '1s'", schedule.Local, ""},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", schedule.Local, ""},
		{"SET TRANSACTION SNAPSHOT '00000003-1'", schedule.Writes, "abc"},
		{"SET CONSTRAINTS ALL IMMEDIATE", schedule.Writes, "abc"},
		{"SET a = 1; COMMIT", schedule.Writes, "abc"},
		{"RESET ALL", schedule.Local, ""},
		{"SHOW TRANSACTION ISOLATION LEVEL", schedule.Local, ""},
		{"BEGIN", schedule.Local, "abc"},
		{"START TRANSACTION READ ONLY", schedule.Local, "abc"},
		{"COMMIT", schedule.Writes, "abc"},
		{"SAVEPOINT a", schedule.Writes, "abc"},
		{"SELECT 1", schedule.Reads, "c"},
		{"select pg_catalog.version()", schedule.Reads, "c"},
		{"SELECT current_setting('server_version')", schedule.Reads, "c"},
		{"SELECT oid FROM pg_type WHERE typname IN ('a', 'b')", schedule.Reads, "c"},
		{"SELECT a.attname FROM pg_class c, pg_catalog.pg_attribute a ORDER BY a.attnum, c.oid", schedule.Reads, "c"},
		{"SELECT x.n FROM (SELECT oid AS n FROM pg_namespace) AS x WHERE EXISTS (SELECT 1 FROM pg_am)", schedule.Reads, "c"},
		{"SELECT 1 FROM pg_class c, items", schedule.Reads, "abc"},
		{"SELECT 1 FROM pg_class JOIN items ON true", schedule.Reads, "abc"},
		{"SELECT 1 FROM (items CROSS JOIN pg_class)", schedule.Reads, "abc"},
		{"SELECT 1 FROM pg_class WHERE oid IN (SELECT stock FROM items)", schedule.Reads, "abc"},
		{"SELECT 1 FROM pg_class WHERE oid IN (TABLE items)", schedule.Reads, "abc"},
		{"SELECT 1 FROM pg_class UNION SELECT stock FROM items", schedule.Reads, "abc"},
		{"SELECT 1 FROM shop.pg_class", schedule.Reads, "abc"},
		{"SELECT 1 FROM pg_class FOR UPDATE", schedule.Writes, "abc"},
		{"SELECT 1 FROM pg_stat_activity", schedule.Reads, "abc"},
		{"SELECT f(oid) FROM pg_class", schedule.Writes, "abc"},
		{"", schedule.Local, ""},
	} {
		s := effect.SQL(c.sql, postgres)
		got := ""
		for _, in := range []struct {
			name                     string
			inTransaction, snapshots bool
		}{{"a", false, false}, {"b", true, false}, {"c", true, true}} {
			if s.Waits(in.inTransaction, in.snapshots) {
				got += in.name
			}
		}
		if s.Effect != c.effect || got != c.waits {
			t.Errorf("%q: %d %q, want %d %q", c.sql, s.Effect, got, c.effect, c.waits)
		}
	}
}
