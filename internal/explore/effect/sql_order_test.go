package effect_test

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
)

// TestCrosses: two texts that lock two rows, or two tables, in opposite orders may deadlock. Texts that
// lock them in the same order do not, nor do texts that first take one common lock.
func TestCrosses(t *testing.T) {
	const (
		first, second = "UPDATE items SET stock = 1 WHERE id = 1", "UPDATE items SET stock = 1 WHERE id = 2"
		order         = "UPDATE orders SET paid = 1 WHERE id = 1"
		look          = "SELECT stock FROM items WHERE id = 2 FOR UPDATE"
	)
	for _, d := range []effect.Dialect{effect.MySQL, effect.Postgres} {
		c := &effect.Catalog{Dialect: d, Tables: map[string]*effect.Relation{"items": {}, "orders": {}, "log": {}}}
		c.Routines = routines(map[string]string{
			"p_move(a,b)":  "BEGIN START TRANSACTION; UPDATE items SET stock = stock - 1 WHERE id = a; UPDATE items SET stock = stock + 1 WHERE id = b; COMMIT; END",
			"p_loops(a,b)": "BEGIN START TRANSACTION; FOR r IN (SELECT 1) DO UPDATE items SET stock = 1 WHERE id = r; END FOR; COMMIT; END",
		})
		for _, one := range []struct {
			a, b   string
			inside bool
			want   bool
		}{
			{a: first + "; " + second, b: second + "; " + first, inside: true, want: true},
			{a: "BEGIN; " + first + "; " + second + "; COMMIT", b: "BEGIN; " + second + "; " + first + "; COMMIT", want: true},
			{a: "BEGIN; " + look + "; " + first + "; COMMIT", b: "BEGIN; " + first + "; " + second + "; COMMIT", want: true},
			{a: first + "; " + order, b: order + "; " + first, inside: true, want: true},
			{a: "UPDATE items SET stock = 1; UPDATE orders SET paid = 1", b: "UPDATE orders SET paid = 2; UPDATE items SET stock = 2", inside: true, want: true},
			{a: first + "; " + second, b: second + "; " + first, want: d == effect.Postgres}, // MySQL commits each statement
			{a: first + "; " + second, b: first + "; " + second, inside: true},
			{a: first, b: second, inside: true},
			{a: first + "; INSERT INTO log VALUES (1)", b: "INSERT INTO log VALUES (2); " + first, inside: true},
			{a: order + "; " + first + "; " + second, b: order + "; " + second + "; " + first, inside: true}, // the lock on the purchase lets only one text run
			{a: "UPDATE items SET stock = 1 WHERE name = 'a'; UPDATE items SET stock = 2 WHERE name = 'b'", b: "UPDATE items SET stock = 2 WHERE name = 'a'; UPDATE items SET stock = 1 WHERE name = 'b'", inside: true},
			{a: first + "; UPDATE items SET stock = 1 WHERE stock < 0", b: "UPDATE items SET stock = 1 WHERE stock < 1; " + first, inside: true}, // the rows are unknown
			{a: "CALL p_move(1, 2)", b: "CALL p_move(2, 1)", want: true},
			{a: "CALL p_move(1, 2)", b: "CALL p_move(1, 3)"},
			{a: "CALL p_move(1, 2)", b: "CALL p_move(3, 2)"},
			{a: "CALL p_loops(1, 2)", b: "CALL p_loops(2, 1)"},
			{a: "CALL p_move(1, 2)", b: second, want: false},
			{a: upsert(d, "(1, 5), (2, 5)"), b: upsert(d, "(2, 7), (1, 7)"), want: true},
			{a: upsert(d, "(1, 5), (2, 5)"), b: upsert(d, "(1, 7), (2, 7)")},
			{a: "INSERT INTO items VALUES (1, 5), (2, 5)", b: "INSERT INTO items VALUES (2, 5), (1, 5)"},
		} {
			for _, pair := range [][2]string{{one.a, one.b}, {one.b, one.a}} {
				if got := c.Uses(pair[0]).Crosses(c.Uses(pair[1]), one.inside, one.inside); got != one.want {
					t.Errorf("%d: %s\nand %s: %v, want %v", d, pair[0], pair[1], got, one.want)
				}
			}
		}
	}
}

func upsert(d effect.Dialect, rows string) string {
	if d == effect.MySQL {
		return "INSERT INTO items (id, stock) VALUES " + rows + " ON DUPLICATE KEY UPDATE stock = 5"
	}
	return "INSERT INTO items (id, stock) VALUES " + rows + " ON CONFLICT (id) DO UPDATE SET stock = 5"
}
