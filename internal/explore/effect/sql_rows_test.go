package effect_test

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
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
