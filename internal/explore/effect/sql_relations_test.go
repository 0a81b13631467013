package effect_test

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
)

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
