package rush_test

import (
	"errors"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/product"
)

// TestRead: the report shows stock and records as they are, right or wrong.
func TestRead(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		db := open(t).DB
		exec := func(statement string) {
			t.Helper()
			if err := db.Exec(statement).Error; err != nil {
				t.Fatal(err)
			}
		}
		const insert = "INSERT INTO purchase_history (product_name, purchaser, purchase_time, amount, strategy, left_after, waited_ms, idempotency_key) VALUES "
		for _, c := range []struct {
			name, statement string
			want            audit.Sums
		}{
			{"fresh", "DELETE FROM purchase_history", audit.Sums{Stocked: 100, Leftover: 100}},
			{"another product's record", insert + "('pear', 'a', '2026-01-01', 5, 'x', 0, 0, NULL)", audit.Sums{Stocked: 100, Leftover: 100}},
			{"stock gone, no record", "UPDATE product SET amount = 97", audit.Sums{Stocked: 100, Leftover: 97, Drift: -3}},
			{
				"records again", insert + "('apple', 'a', '2026-01-01', 2, 'x', 0, 0, NULL), ('apple', 'b', '2026-01-01', 1, 'x', 0, 0, 'k')",
				audit.Sums{Stocked: 100, Leftover: 97, Records: 2, UnitsSold: 3},
			},
			{
				"units in parts", "INSERT INTO product_part (product_name, part, amount) VALUES ('apple', 0, 4), ('apple', 3, 2), ('pear', 0, 9)",
				audit.Sums{Stocked: 100, Leftover: 103, Records: 2, UnitsSold: 3, Drift: 6},
			},
			{"and not", "DELETE FROM product_part", audit.Sums{Stocked: 100, Leftover: 97, Records: 2, UnitsSold: 3}},
			{
				"too many", insert + "('apple', 'c', '2026-01-01', 100, 'x', 0, 0, NULL)",
				audit.Sums{Stocked: 100, Leftover: 97, Records: 3, UnitsSold: 103, Oversold: 3, Drift: 100},
			},
		} {
			exec(c.statement)
			got, err := audit.Read(t.Context(), db, "apple")
			if err != nil || got != c.want {
				t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
			}
		}
		if _, err := audit.Read(t.Context(), db, "moon"); !errors.Is(err, product.ErrNotFound) {
			t.Errorf("no such product: %v, want ErrNotFound", err)
		}
	})
}

// TestReadDuplicates drops the index, since the schema refuses a second record of a key.
func TestReadDuplicates(t *testing.T) {
	db := enginetest.Local(t).DB
	for _, statement := range []string{
		"DROP INDEX purchase_history_key ON purchase_history",
		`INSERT INTO purchase_history (product_name, purchaser, purchase_time, amount, strategy, left_after, waited_ms, idempotency_key)
			VALUES ('apple', 'a', '2026-01-01', 1, 'x', 0, 0, 'k'), ('apple', 'a', '2026-01-01', 1, 'x', 0, 0, 'k'),
			('apple', 'a', '2026-01-01', 1, 'x', 0, 0, NULL), ('apple', 'a', '2026-01-01', 1, 'x', 0, 0, NULL)`,
	} {
		if err := db.Exec(statement).Error; err != nil {
			t.Fatal(err)
		}
	}
	if got, err := audit.Read(t.Context(), db, "apple"); err != nil || got.Duplicates != 1 || got.Records != 4 {
		t.Errorf("%+v, %v; want 4 records, 1 duplicate", got, err)
	}
}
