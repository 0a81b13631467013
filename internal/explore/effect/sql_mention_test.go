package effect

import (
	"slices"
	"testing"
)

// TestMentions: what can be said about the tables of a statement, from its text.
func TestMentions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                string
		d                   Dialect
		name                string // a name that must be found; "" for none
		undecided, alters   bool
		controls, ends, del bool
	}{
		{text: `SELECT "a"."Stock" AS "x" FROM "public"."Stock_Level" "a"`, d: Postgres, name: "stock_level"},
		{text: "SELECT stock FROM items WHERE name = 'orders'", d: MySQL, name: "items"},
		{text: "SELECT `stock` FROM `items` LIMIT 1", d: MySQL, name: "items"},
		{text: `SELECT 1 FROM "items"`, d: MySQL, name: "items"}, // with ANSI_QUOTES
		{text: "SELECT * FROM items FOR UPDATE", d: Postgres, name: "items", alters: true},
		{text: "INSERT INTO items (a, b) SELECT a, b FROM other RETURNING id", d: Postgres, name: "other", alters: true},
		{text: `INSERT INTO "shop"."items" ("a", "b") VALUES (1, now()) ON CONFLICT ("a") DO UPDATE SET b = 2`, d: Postgres, name: "items", alters: true},
		{text: "REPLACE INTO items (a) VALUES (1)", d: MySQL, name: "items", alters: true, del: true},
		{text: "UPDATE a JOIN b ON a.id = b.id SET a.x = 1", d: MySQL, name: "b", alters: true},
		{text: "DELETE FROM items USING other WHERE items.id = other.id", d: Postgres, name: "other", alters: true, del: true},
		{text: "WITH x AS (UPDATE items SET a = 1 RETURNING a) SELECT * FROM x", d: Postgres, name: "items", alters: true},
		{text: "SELECT pg_advisory_xact_lock(7)", d: Postgres},
		{text: "SELECT GET_LOCK('a', 10)", d: MySQL},
		{text: "SELECT nextval('items_id_seq')", d: Postgres},
		{text: "SELECT buy(7)", d: Postgres, undecided: true, alters: true},
		{text: "SELECT shop.count(7)", d: Postgres, undecided: true, alters: true},
		{text: "INSERT INTO items (a) VALUES (buy(7))", d: Postgres, undecided: true, alters: true},
		{text: "SELECT * INTO copies FROM items", d: Postgres, undecided: false, alters: true},
		{text: "CALL buy(7)", d: MySQL, undecided: true, alters: true},
		{text: "DO $$ BEGIN PERFORM 1; END $$", d: Postgres, undecided: true, alters: true},
		{text: "EXECUTE q(1)", d: Postgres, undecided: true, alters: true},
		{text: "FETCH 10 FROM c", d: Postgres, undecided: true, alters: true},
		{text: "TRUNCATE items", d: Postgres, undecided: true, alters: true},
		{text: "LOCK TABLE items", d: Postgres, name: "items", undecided: true},
		{text: "SELECT 1 FROM items WHERE a IN (1, 2... (9000 bytes)", d: Postgres, undecided: true, alters: true},
		{text: "SELECT 1 FROM items WHERE a = 'long'... (300 bytes) LIMIT 1", d: MySQL, name: "items"},
		{text: "SELECT 'never ends", d: MySQL, undecided: true, alters: true},
		{text: "SELECT 1 /*! INTO @x */", d: MySQL, undecided: true, alters: true},
		{text: "SELECT 1; UPDATE items SET a = 1", d: MySQL, name: "items", alters: true},
		{text: "BEGIN ISOLATION LEVEL REPEATABLE READ", d: Postgres, controls: true},
		{text: "START TRANSACTION", d: MySQL, controls: true},
		{text: "START TRANSACTION WITH CONSISTENT SNAPSHOT", d: MySQL, undecided: true, alters: true},
		{text: "BEGIN NOT ATOMIC SELECT 1", d: MySQL, undecided: true, alters: true},
		{text: "COMMIT", d: MySQL, controls: true, ends: true},
		{text: "ROLLBACK TO SAVEPOINT a", d: Postgres, controls: true},
		{text: "COMMIT PREPARED 'x'", d: Postgres, undecided: true},
		{text: "SET autocommit=0", d: MySQL, controls: true, ends: true},
		{text: "SET CONSTRAINTS ALL IMMEDIATE", d: Postgres, undecided: true},
	} {
		m := Mentions(c.text, c.d)
		if m.Undecided != c.undecided || m.Alters != c.alters || m.Controls != c.controls || m.Ends != c.ends || m.Deletes != c.del || c.name != "" && !slices.Contains(m.Names, c.name) {
			t.Errorf("%s: %+v, want name %q, undecided %t, alters %t, controls %t, ends %t, deletes %t", c.text, m, c.name, c.undecided, c.alters, c.controls, c.ends, c.del)
		}
	}
	if m := Mentions("SELECT stock FROM items WHERE name = 'orders'", MySQL); slices.Contains(m.Names, "orders") {
		t.Errorf("a string counts as a name: %v", m.Names)
	}
}
