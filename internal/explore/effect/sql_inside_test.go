package effect_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
)

// TestInside: which statements another connection's write can come in between.
func TestInside(t *testing.T) {
	for _, c := range []struct {
		sql      string
		mysql    effect.Inside
		postgres effect.Inside
	}{
		{"UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0", effect.Atomic, effect.Atomic},
		{"INSERT INTO orders (item_id) VALUES (1), (2)", effect.Atomic, effect.Atomic},
		{"INSERT INTO orders SELECT 1, 2", effect.Atomic, effect.Atomic},
		{"DELETE FROM carts WHERE id = 7", effect.Atomic, effect.Atomic},
		{"SELECT stock FROM items WHERE id IN (SELECT item_id FROM orders)", effect.Atomic, effect.Atomic},
		{"SELECT stock FROM items FOR UPDATE", effect.Atomic, effect.Atomic},
		{"", effect.Atomic, effect.Atomic},
		{"UPDATE events SET at = EXTRACT(EPOCH FROM now()) WHERE a IS DISTINCT FROM b", effect.Atomic, effect.Atomic},
		{"INSERT INTO orders SELECT * FROM (VALUES (1), (2)) AS v", effect.Atomic, effect.Atomic},
		{"INSERT INTO stats VALUES (1) ON DUPLICATE KEY UPDATE n = n + 1", effect.Atomic, effect.Atomic},
		{"REPLACE INTO items VALUES (1, 2)", effect.Atomic, effect.Atomic},

		{"INSERT INTO orders (item_id) SELECT id FROM items WHERE id = 1 AND stock > 0", effect.Lockable, effect.Lockable},
		{"INSERT INTO orders SELECT 1 WHERE (SELECT stock FROM shop.items WHERE id = 1) > 0", effect.Lockable, effect.Lockable},
		{"INSERT INTO orders VALUES ((SELECT max(price) FROM prices))", effect.Lockable, effect.Lockable},
		{"INSERT INTO orders SELECT a.id FROM carts a JOIN items b ON a.id = b.id, prices", effect.Lockable, effect.Lockable},
		{"INSERT INTO orders SELECT id FROM (carts JOIN items USING (id))", effect.Lockable, effect.Lockable},
		{"UPDATE items SET stock = 0 WHERE id = (SELECT item_id FROM carts WHERE id = 7)", effect.Lockable, effect.Lockable},
		{"DELETE FROM carts WHERE NOT EXISTS (SELECT 1 FROM items WHERE stock > 0)", effect.Lockable, effect.Lockable},
		{"INSERT INTO orders SELECT id FROM items WHERE stock > 0 FOR UPDATE", effect.Atomic, effect.Atomic},
		{"INSERT INTO orders SELECT id FROM items WHERE stock > 0 FOR SHARE", effect.Atomic, effect.Atomic},
		{"REPLACE INTO totals SELECT item_id, count(*) FROM orders GROUP BY item_id", effect.Lockable, effect.Lockable},

		{"INSERT INTO seats (n) SELECT 7 WHERE NOT EXISTS (SELECT 1 FROM seats WHERE n = 7)", effect.Divided, effect.Divided},
		{"INSERT INTO Seats SELECT coalesce(max(n), 0) + 1 FROM seats", effect.Divided, effect.Divided},
		{"UPDATE items SET stock = (SELECT stock FROM items WHERE id = 1) - 1 WHERE id = 1", effect.Divided, effect.Divided},
		{"UPDATE jobs SET taken = 1 WHERE id = (SELECT min(id) FROM jobs WHERE taken = 0)", effect.Divided, effect.Divided},
		{"DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE done) ", effect.Divided, effect.Divided},
		{"INSERT INTO seats SELECT 7 WHERE NOT EXISTS (SELECT 1 FROM seats WHERE n = 7 FOR UPDATE)", effect.Divided, effect.Divided}, // the row does not exist yet
		{"UPDATE jobs SET taken = 1 WHERE id = (SELECT id FROM jobs WHERE taken = 0 LIMIT 1 FOR UPDATE SKIP LOCKED)", effect.Atomic, effect.Atomic},
		{ // WooCommerce's statement: a locked row in another table keeps other buyers out
			"INSERT INTO reserved (order_id, qty) SELECT 5, 1 FROM DUAL WHERE (SELECT qty FROM stock WHERE id = 1 FOR UPDATE) - (SELECT COALESCE(SUM(qty), 0) FROM reserved WHERE id = 1 FOR UPDATE) >= 1 ON DUPLICATE KEY UPDATE qty = VALUES(qty)",
			effect.Atomic, effect.Divided,
		},
		{"INSERT INTO reserved SELECT 5 FROM DUAL WHERE (SELECT qty FROM stock WHERE id = 1) - (SELECT COALESCE(SUM(qty), 0) FROM reserved) >= 1", effect.Divided, effect.Divided},
		{"BEGIN; INSERT INTO seats SELECT max(n) + 1 FROM seats", effect.Divided, effect.Divided},
		{"MERGE INTO seats USING (VALUES (7)) v ON n = 7 WHEN NOT MATCHED THEN INSERT VALUES (7)", effect.Divided, effect.Divided},
	} {
		if got := effect.SQL(c.sql, mysql).Inside; got != c.mysql {
			t.Errorf("MySQL: %q: %d, want %d", c.sql, got, c.mysql)
		}
		if got := effect.SQL(c.sql, postgres).Inside; got != c.postgres {
			t.Errorf("PostgreSQL: %q: %d, want %d", c.sql, got, c.postgres)
		}
	}
	for sql, want := range map[string]effect.Inside{
		"UPDATE items SET stock = stock - c.n FROM carts c WHERE c.item_id = items.id":                                                                               effect.Lockable,
		"UPDATE items SET stock = 0 FROM (SELECT id FROM carts) c WHERE c.id = items.id":                                                                             effect.Lockable,
		"DELETE FROM items USING carts c WHERE c.item_id = items.id":                                                                                                 effect.Lockable,
		"INSERT INTO orders SELECT * FROM unnest($1::int[])":                                                                                                         effect.Atomic,
		"INSERT INTO orders SELECT g FROM generate_series(1, 3) AS g":                                                                                                effect.Atomic,
		"INSERT INTO seats VALUES (7) ON CONFLICT (n) DO UPDATE SET taken = seats.taken + 1 WHERE seats.taken < 2":                                                   effect.Atomic,
		"INSERT INTO seats VALUES (7) ON CONFLICT (n) DO UPDATE SET taken = (SELECT count(*) FROM orders)":                                                           effect.Lockable,
		"UPDATE items SET stock = stock - 1 WHERE stock > 0 RETURNING (SELECT name FROM names)":                                                                      effect.Atomic,
		"WITH free AS (SELECT stock FROM items WHERE id = 1), sale AS (INSERT INTO orders SELECT 1 FROM free) UPDATE items SET stock = (SELECT stock - 1 FROM free)": effect.Divided,
		"WITH free AS (SELECT stock FROM items WHERE id = 1) INSERT INTO orders SELECT 1 FROM free WHERE stock > 0":                                                  effect.Lockable,
		"WITH taken AS (UPDATE items SET stock = stock - 1 WHERE stock > 0 RETURNING id) INSERT INTO orders (item_id) SELECT id FROM taken":                          effect.Atomic,
		"WITH job (id) AS MATERIALIZED (SELECT id FROM jobs LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE jobs SET taken = true FROM job WHERE job.id = jobs.id":            effect.Atomic,
		"WITH a AS (SELECT id FROM pg_class) DELETE FROM items USING a":                                                                                              effect.Atomic,
	} {
		if got := effect.SQL(sql, postgres).Inside; got != want {
			t.Errorf("PostgreSQL: %q: %d, want %d", sql, got, want)
		}
	}
	if got := effect.SQL("UPDATE items i JOIN carts c ON c.item_id = i.id SET i.stock = i.stock - c.n", mysql).Inside; got != effect.Atomic { // it locks the rows of both tables
		t.Errorf("a join: %d", got)
	}
}

// TestAlters: which statements may change rows.
func TestAlters(t *testing.T) {
	for sql, want := range map[string]bool{
		"UPDATE items SET stock = 0": true, "INSERT INTO a VALUES (1)": true, "CALL buy(1)": true, "SELECT buy(1)": true, "TRUNCATE a": true,
		"WITH a AS (DELETE FROM b RETURNING *) SELECT * FROM a FOR UPDATE": true, "BEGIN; DELETE FROM a": true,
		"SELECT 1 FROM items FOR UPDATE": false, "SELECT stock FROM items": false, "SELECT GET_LOCK('a', 1)": false, "COMMIT": false,
		"ROLLBACK TO a": false, "BEGIN": false, "SET autocommit = 1": false, "LOCK TABLES items WRITE": false,
	} {
		if got := effect.SQL(sql, mysql).Alters; got != want {
			t.Errorf("%q: %t, want %t", sql, got, want)
		}
	}
}

// TestAccesses: a column counts as fixed only if no row with another value of it can matter. A statement
// that is not understood in all parts has no Access.
func TestAccesses(t *testing.T) {
	has := func(table, column string) bool { return slices.Contains([]string{"id", "a", "b", "fk"}, column) }
	for sql, want := range map[string]string{
		`SELECT * FROM t WHERE id = 1`:                                          "t id=1",
		`SELECT * FROM s."T" AS x WHERE (("x"."id" IN (1, '2'))) AND x.a = 'b'`: "t a=b id=1,2",
		`SELECT * FROM t WHERE id = 1 OR a = 2`:                                 "t",
		`SELECT * FROM t WHERE NOT (id = 1)`:                                    "t",
		`SELECT * FROM t WHERE id = 1 + 1`:                                      "t",
		`SELECT * FROM t WHERE id <> 1`:                                         "t",
		`SELECT * FROM t WHERE a BETWEEN 1 AND id = 2`:                          "t",
		`SELECT * FROM t WHERE id = 01 AND none = 1`:                            "t",
		`SELECT * FROM t WHERE id = '<orders:1>' AND a = <orders.2b>`:           "t a=<orders.2b> id=<orders:1>",
		`SELECT * FROM t LEFT JOIN u ON u.fk = t.id WHERE t.id = 1`:             "t id=1; u fk=1",
		`SELECT * FROM t LEFT JOIN u ON u.fk = t.id AND u.a = 2 WHERE t.a = 3`:  "t a=3; u a=2",
		`SELECT * FROM t LEFT JOIN u ON t.id = 1`:                               "t; u",
		`SELECT * FROM t LEFT JOIN u ON u.fk = t.id WHERE u.id = 1`:             "t; u id=1",
		`SELECT * FROM t JOIN u ON u.fk = t.id WHERE u.fk = 1`:                  "t id=1; u fk=1",
		`SELECT * FROM t, u WHERE u.fk = t.id AND t.id = 1`:                     "t id=1; u fk=1",
		`SELECT * FROM t RIGHT JOIN u ON u.fk = t.id WHERE t.id = 1`:            "-",
		`SELECT * FROM t NATURAL JOIN u WHERE t.id = 1`:                         "-",
		`SELECT * FROM (SELECT id FROM t WHERE a = 1) x ORDER BY x.id LIMIT 1`:  "t a=1",
		`SELECT * FROM t WHERE id = 1 AND EXISTS (SELECT 1 FROM u WHERE b = 2)`: "u b=2; t id=1",
		`SELECT (SELECT max(id) FROM u) FROM t WHERE id = 1`:                    "u; t id=1",
		`SELECT id FROM t WHERE id = 1 UNION SELECT id FROM u WHERE id = 2`:     "t id=1; u id=2",
		`SELECT id FROM t WHERE a IS DISTINCT FROM b AND id = 1`:                "t id=1",
		`SELECT extract(epoch FROM a) FROM t WHERE id = 1`:                      "-",
		`WITH x AS (SELECT 1) SELECT * FROM t WHERE id = 1`:                     "-",
		`SELECT * FROM generate_series(1, 2) WHERE id = 1`:                      "-",
		`SELECT * FROM t WHERE id = 1 FOR UPDATE`:                               "locks t id=1",
		`SELECT * FROM t WHERE id = 1 FOR UPDATE SKIP LOCKED`:                   "-",
		`SELECT * FROM (SELECT * FROM t FOR UPDATE) x`:                          "-",
		`SELECT * FROM t WHERE id = 1; SELECT 1`:                                "-",
		`UPDATE t SET a = 1, b = now(), fk = NULL WHERE id IN (2)`:              "t id=2 <- a=1 b=? fk=null",
		`UPDATE t SET a = 1 FROM u WHERE t.id = u.id AND t.id = 1`:              "-",
		`UPDATE t SET (a, b) = (1, 2) WHERE id = 1`:                             "-",
		`UPDATE t SET a = (SELECT max(a) FROM u) WHERE id = 1 RETURNING a`:      "u; t id=1 <- a=?",
		`UPDATE t SET a = 1 WHERE 0=1`:                                          " <- a=1 none",
		`SELECT count(*) FROM t WHERE (1 = 2)`:                                  "",
		`SELECT * FROM t LEFT JOIN u ON 0 = 1 WHERE 1 = 1`:                      "t; u",
		`SELECT * FROM t WHERE a = 1 OR 0 = 1`:                                  "t",
		`DELETE FROM t WHERE id = 1`:                                            "t id=1",
		`DELETE FROM t USING u WHERE t.id = u.id`:                               "-",
		`INSERT INTO t (id, a) VALUES (DEFAULT, 1), (3, 'x') RETURNING id`:      "t <- a=1 id=default | a=x id=3",
		`INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING`:                  "-",
		`INSERT INTO t (id) SELECT id FROM u`:                                   "-",
		`INSERT INTO t VALUES (1)`:                                              "-",
		`TRUNCATE t`:                                                            "-",
	} {
		a, ok := effect.Accesses(sql, has)
		if got := said(a, ok); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

// said writes an Access in one line.
func said(a effect.Access, ok bool) string {
	if !ok {
		return "-"
	}
	var reads, sets []string
	for _, r := range a.Reads {
		one := r.Table
		for _, c := range slices.Sorted(maps.Keys(r.Fixed)) {
			one += " " + c + "=" + strings.Join(r.Fixed[c], ",")
		}
		reads = append(reads, one)
	}
	for _, v := range a.Sets {
		one := ""
		for _, c := range slices.Sorted(maps.Keys(v)) {
			value := "?"
			if v[c] != nil {
				value = strings.TrimPrefix(*v[c], "\x00")
			}
			one += fmt.Sprintf(" %s=%s", c, value)
		}
		sets = append(sets, one)
	}
	text := strings.Join(reads, "; ")
	if a.Verb == "INSERT" {
		text = a.Finds.Table
	}
	if len(sets) > 0 {
		text += " <-" + strings.Join(sets, " |")
	}
	if a.None {
		text += " none"
	}
	if a.Locks {
		text = "locks " + text
	}
	return text
}
