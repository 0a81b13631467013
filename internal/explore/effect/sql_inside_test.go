package effect_test

import (
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
