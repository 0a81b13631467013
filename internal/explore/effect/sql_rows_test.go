package effect_test

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// TestDisjoint: two statements touch different rows only if a condition of each fixes a column that neither
// changes.
func TestDisjoint(t *testing.T) {
	const (
		one  = "UPDATE items SET stock = stock - 1 WHERE id = 1"
		id   = "6f0e4c6e-0000-4000-8000-000000000001"
		id2  = "6f0e4c6e-0000-4000-8000-000000000002"
		noon = "UPDATE items SET stock = 0 WHERE "
	)
	for other, want := range map[string]bool{
		"UPDATE items SET stock = 0 WHERE id = 2":                     true,
		"DELETE FROM items WHERE id = 2 AND stock > 0":                true,
		"UPDATE items SET stock = 0 WHERE stock > 0 AND items.id = 2": true,
		"DELETE FROM items WHERE (stock > 0) AND id = 2 LIMIT 1":      true,
		one:                                    false,
		noon + "id = 1":                        false,
		noon + "id > 2":                        false,
		noon + "id = 2 OR stock = 1":           false,
		noon + "NOT id = 2":                    false,
		noon + "(id = 2)":                      false,
		noon + "id = 2 + 0":                    false,
		noon + "id = 02":                       false,
		noon + "id = '2'":                      false,
		noon + "stock = 2":                     false,
		noon + "id = 2 AND x IN (SELECT 1)":    false,
		"UPDATE items SET stock = 0":           false,
		"UPDATE items SET id = 1 WHERE id = 2": false,
		"UPDATE items JOIN shops SET stock = 0 WHERE shops.id = 2":   false,
		"UPDATE items, shops SET stock = 0 WHERE shops.id = 2":       false,
		"INSERT INTO items SELECT 2 WHERE id = 2":                    false,
		"UPDATE items SET stock = 0 WHERE id = 2; DELETE FROM items": false,
		"UPDATE items SET stock = 0 FROM shops WHERE shops.id = 2":   false,
	} {
		for _, d := range []effect.Dialect{effect.MySQL, effect.Postgres} {
			if got := effect.Disjoint(one, other, d) && effect.Disjoint(other, one, d); got != want {
				t.Errorf("%s: %v, want %v", other, got, want)
			}
		}
	}
	if !effect.Disjoint(noon+"id = '"+id+"'", noon+"id = '"+id2+"'", effect.Postgres) || effect.Disjoint(noon+"id = '"+id+"'", noon+"id = '"+id+"'", effect.Postgres) {
		t.Error("two UUIDs are two rows, and one is one")
	}
}

// TestInsertsOnly: an INSERT that reads or changes rows is more than an insert.
func TestInsertsOnly(t *testing.T) {
	for sql, want := range map[string]bool{
		"INSERT INTO orders (item, note) VALUES (1, 'SELECT ON')":      true,
		"insert into orders values (1) RETURNING id":                   true,
		"INSERT INTO orders SELECT 1 FROM items":                       false,
		"INSERT INTO orders VALUES (1) ON CONFLICT DO NOTHING":         false,
		"INSERT INTO orders VALUES (1) ON DUPLICATE KEY UPDATE a = 1":  false,
		"INSERT INTO orders VALUES ((SELECT max(id) FROM items))":      false,
		"INSERT INTO orders VALUES (1); INSERT INTO orders VALUES (1)": false,
		"REPLACE INTO orders VALUES (1)":                               false,
		"UPDATE items SET stock = 1":                                   false,
	} {
		for _, d := range []effect.Dialect{effect.MySQL, effect.Postgres} {
			if got := effect.InsertsOnly(sql, d); got != want {
				t.Errorf("%s: %v, want %v", sql, got, want)
			}
		}
	}
}

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

func TestRelations(t *testing.T) {
	for _, c := range []struct {
		sql  string
		d    effect.Dialect
		want []string
	}{
		{`SELECT * FROM stock_level WHERE "stockAllocated" > "stockOnHand"`, effect.Postgres, []string{"stock_level"}},
		{`SELECT 1 FROM "order" WHERE state = 'from x' HAVING count(*) > 1`, effect.Postgres, []string{"order"}},
		{"SELECT * FROM shop.`items` AS i, orders o LEFT JOIN Prices ON 1 WHERE i.id IN (SELECT id FROM sold)", effect.MySQL, []string{"items", "orders", "prices", "sold"}},
		{`UPDATE ONLY "stock_level" SET "stockAllocated" = 1`, effect.Postgres, []string{"stock_level"}},
		{`INSERT INTO public.orders (id) VALUES (1) -- FROM nothing`, effect.Postgres, []string{"orders"}},
		{`DELETE FROM a USING b WHERE a.id = b.id`, effect.Postgres, []string{"a", "b"}},
		{`SELECT * FROM (SELECT 1) AS x`, effect.Postgres, nil},
		{`SELECT id FROM jobs FOR UPDATE SKIP LOCKED`, effect.Postgres, []string{"jobs"}},
		{`SELECT id FROM jobs FOR NO KEY UPDATE OF jobs`, effect.Postgres, []string{"jobs"}},
		{`INSERT INTO a VALUES (1) ON CONFLICT (id) DO UPDATE SET n = 2`, effect.Postgres, []string{"a"}},
		{`INSERT INTO a VALUES (1) ON DUPLICATE KEY UPDATE n = 2`, effect.MySQL, []string{"a"}},
		{`COMMIT`, effect.Postgres, nil},
	} {
		if got := effect.Relations(c.sql, c.d); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q; want %q", c.sql, got, c.want)
		}
	}
}
