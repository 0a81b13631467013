package effect

import (
	"slices"
	"strings"
	"testing"
)

// TestMentions checks the names and properties that Mentions finds in a text.
func TestMentions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                string
		d                   Dialect
		name                string // a name that Mentions must find; "": none
		undecided, alters   bool
		controls, ends, del bool
	}{
		{text: `SELECT "a"."Stock" AS "x" FROM "public"."Stock_Level" "a"`, d: Postgres, name: "stock_level"},
		{text: "SELECT stock FROM items WHERE name = 'orders'", d: MySQL, name: "items"},
		{text: "SELECT `stock` FROM `items` LIMIT 1", d: MySQL, name: "items"},
		{text: `SELECT 1 FROM "items"`, d: MySQL, name: "items"}, // a name if ANSI_QUOTES is on
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

// TestShorten checks the short form of long statements.
func TestShorten(t *testing.T) {
	t.Parallel()
	var wide []string
	for _, c := range strings.Fields("createdAt updatedAt stockOnHand stockAllocated id stockLocationId productVariantId") {
		wide = append(wide, `"StockLevel"."`+c+`" AS "StockLevel_`+c+`"`)
	}
	columns := strings.Join(wide, ", ")
	for _, c := range []struct {
		text, want string
		d          Dialect
	}{
		{d: Postgres, text: `SELECT ` + columns + ` FROM "stock_level" "StockLevel" WHERE (("StockLevel"."id" = 5)) LIMIT 1`, want: `SELECT ... FROM stock_level WHERE id = 5 LIMIT 1`},
		{d: Postgres, text: `SELECT ` + columns + ` FROM "public"."stock_level" "StockLevel" WHERE "StockLevel"."id" = 5 FOR UPDATE`, want: `SELECT ... FROM stock_level WHERE id = 5 FOR UPDATE`},
		{
			d:    Postgres,
			text: `SELECT ` + columns + ` FROM "stock_level" "StockLevel" LEFT JOIN "stock_location" "L" ON "L"."id"="StockLevel"."stockLocationId"  AND ("L"."deletedAt" IS NULL) WHERE "L"."id" = 1 AND "StockLevel"."id" IN (11111, 22222, 33333, 44444, 55555, 66666, 77777, 88888, 99999)`,
			want: `SELECT ... FROM stock_level JOIN stock_location WHERE stock_location.id = 1 AND stock_level.id IN (11111, 22222, ... 7 more)`,
		},
		{d: Postgres, text: `SELECT ` + columns + ` FROM (SELECT * FROM "stock_level") "StockLevel" WHERE "StockLevel"."id" = 5`, want: `SELECT ... FROM (SELECT * FROM stock_level) StockLevel WHERE StockLevel.id = 5`},
		{
			d:    Postgres,
			text: `UPDATE "stock_level" SET "stockOnHand" = 3, "stockLocationId" = 7, "stockAllocated" = 1, "updatedAt" = CURRENT_TIMESTAMP WHERE "id" IN (5) RETURNING "updatedAt"`,
			want: `UPDATE stock_level SET stockAllocated = 1, ... WHERE id IN (5) RETURNING updatedAt`,
		},
		{
			d:    Postgres,
			text: `INSERT INTO "order_line"("createdAt", "updatedAt", "quantity", "stockAllocated", "orderId", "id") VALUES (DEFAULT, DEFAULT, 1, 9, 4, DEFAULT), (DEFAULT, DEFAULT, 2, f(1, 2), 4, DEFAULT) RETURNING "createdAt", "updatedAt", "quantity", "stockAllocated", "orderId", "id", "billingAddress"`,
			want: `INSERT INTO order_line(stockAllocated, ...) VALUES (9, ...), (f(1, 2), ...) RETURNING ...`,
		},
		{
			d:    Postgres,
			text: `INSERT INTO "order_line"("createdAt", "id", "quantity", "orderId", "note", "addressId") VALUES (DEFAULT, DEFAULT, 1, 4, 'a long text that says nothing', 9)`,
			want: `INSERT INTO order_line(quantity, orderId, addressId, ...) VALUES (1, 4, 9, ...)`,
		},
		{
			d:    MySQL,
			text: "UPDATE `items` `i` SET `i`.`stockAllocated` = `i`.`stockAllocated` - 1 WHERE `i`.`id` = 5 AND `i`.`stockAllocated` > 0 AND `i`.`x` = 'a \"b\"'",
			want: "UPDATE items SET stockAllocated = stockAllocated - 1 WHERE id = 5 AND stockAllocated > 0 AND x = 'a \"b\"'",
		},
		{d: MySQL, text: "SELECT `stock` FROM `items` WHERE `id` = 1", want: "SELECT `stock` FROM `items` WHERE `id` = 1"},
		{d: MySQL, text: "SELECT 'never ends " + strings.Repeat("x", 400), want: "SELECT 'never ends " + strings.Repeat("x", 281) + "..."},
	} {
		b := Shorten(c.text, c.d, func(column string) bool { return column == "stockallocated" })
		if b.Text != c.want {
			t.Errorf("%s\nbecomes %s\nwant    %s", c.text, b.Text, c.want)
		}
	}
	b := Shorten(`SELECT `+columns+` FROM "stock_level" "StockLevel"`, Postgres, func(string) bool { return false })
	if b.Columns["stocklevel_stockallocated"] != "stockAllocated" || len(b.Columns) != 7 {
		t.Errorf("columns %v", b.Columns)
	}
	b = Shorten(`UPDATE "s" SET "stockAllocated" = 1, "updatedAt" = CURRENT_TIMESTAMP, at = <time>`, Postgres, func(string) bool { return false })
	if !slices.Equal(b.Sets, []string{"stockallocated"}) {
		t.Errorf("sets %v", b.Sets)
	}
}
