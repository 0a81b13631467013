package effect

import (
	"slices"
	"strings"
	"testing"
)

// TestShorten: a wide statement as a person reads it.
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
