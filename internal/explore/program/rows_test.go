package program_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

const rowsBuyers = "buyers:\n  - POST http://127.0.0.1:8080/buy?1,2\n  - POST http://127.0.0.1:8080/buy?2,1"

// TestAppRows: the search of a long program on PostgreSQL leaves out the orders of commands that use
// different rows. A trigger writes a row that both buyers use, although no statement names it. This shop
// breaks in an order that would then be left out. The same shop without the savepoints is too short for
// this, and gives the same result.
func TestAppRows(t *testing.T) {
	tier.Soak(t, "a search of a program with 100 commands")
	t.Parallel()
	shop := statementShop{
		database: "postgres", buyers: rowsBuyers, fails: "503",
		schema: `CREATE TABLE totals (id INT PRIMARY KEY, sold INT);
INSERT INTO totals VALUES (1, 0);
CREATE FUNCTION count_sale() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE totals SET sold = sold + NEW.id; RETURN NEW; END $$;
CREATE TRIGGER counts AFTER UPDATE OF stock ON items FOR EACH ROW WHEN (NEW.stock < 2) EXECUTE FUNCTION count_sale();
ALTER TABLE items ADD seen INT;`,
		reset: "UPDATE totals SET sold = 0", never: "SELECT * FROM totals WHERE sold > 2",
	}
	short := []string{"UPDATE items SET seen = 1 WHERE id = {0} AND (SELECT sold FROM totals WHERE id = 1) = 0", "UPDATE items SET stock = stock - 1 WHERE id = {0}"}
	shop.sql = append(padding(), short...)
	code, long, stderr := search(t, shop.file(t))
	if code != shoptest.Broken || !long.Complete || long.Explored > 400 {
		t.Errorf("exit %d, %d explored, complete %t, %s: %s", code, long.Explored, long.Complete, long.Unforeseen, stderr)
	}
	shop.sql = short
	if code, r, stderr := search(t, shop.file(t)); code != shoptest.Broken || !r.Complete || r.Explored < long.Explored {
		t.Errorf("the short program: exit %d, %d explored, complete %t: %s", code, r.Explored, r.Complete, stderr)
	}
}

// padding returns statements that make a program long, and use no row.
func padding() (all []string) {
	all = append(all, "BEGIN")
	for n := range 50 {
		all = append(all, fmt.Sprint("SAVEPOINT s", n))
	}
	return append(all, "COMMIT")
}

// TestAppRowsAtRandom: random programs reach the same states with the search by rows as without it. The
// padding turns it on. A rule that one third of the last states break shows which of them a search reaches.
func TestAppRowsAtRandom(t *testing.T) {
	tier.Soak(t, "60 searches, half of them of a program with 100 commands")
	t.Parallel()
	statements := []string{
		"UPDATE items SET seen = seen * 3 + {0} WHERE id = %s",
		"UPDATE items SET stock = stock - 1 WHERE id = %s AND stock > 0",
		"UPDATE items SET seen = seen * 3 + (SELECT stock FROM items WHERE id = %s) WHERE id = {0}",
		"UPDATE items SET seen = seen * 3 + (SELECT count(*) FROM parts WHERE item = %s) WHERE id = {0}",
		"INSERT INTO parts (item, n) VALUES (%s, {0})",
		"UPDATE parts SET item = {1} WHERE item = %s AND n > 0",
		"DELETE FROM parts WHERE item = %s",
		"SELECT * FROM items WHERE id = %s FOR UPDATE",
		"INSERT INTO parts (item, n) SELECT id, stock FROM items WHERE id = %s",
	}
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			var sql []string
			for range 4 {
				sql = append(sql, "?"+fmt.Sprintf(statements[dice.IntN(len(statements))], []string{"{0}", "{1}"}[dice.IntN(2)]))
			}
			buyers := rowsBuyers
			switch {
			case seed >= 8: // the first buyer has two transactions at once
				sql = []string{"BEGIN", "|BEGIN", "|" + strings.TrimPrefix(sql[0], "?"), "|COMMIT", sql[1], "COMMIT"}
				buyers = "buyers:\n  - POST http://127.0.0.1:8080/buy?1,2,1\n  - POST http://127.0.0.1:8080/buy?2,1"
			case dice.IntN(2) == 0:
				sql = slices.Concat([]string{"BEGIN"}, sql[:2], []string{"COMMIT"}, sql[2:])
			}
			t.Log(sql)
			for third := range 3 {
				shop := statementShop{
					database: "postgres", sql: sql, buyers: buyers, fails: "503",
					schema: "ALTER TABLE items ADD seen INT DEFAULT 0; CREATE TABLE parts (item INT, n INT); INSERT INTO parts VALUES (1, 1), (2, 1);",
					reset:  "WITH gone AS (DELETE FROM parts), back AS (INSERT INTO parts VALUES (1, 1), (2, 1)) UPDATE items SET seen = 0",
					never:  fmt.Sprintf("SELECT 1 FROM items HAVING :sold = 2 AND (sum(id * seen + stock) + (SELECT COALESCE(sum(item + n), 0) FROM parts)) %% 3 = %d", third),
				}
				code, short, stderr := search(t, shop.file(t))
				shop.sql = append(padding(), sql...)
				again, long, more := search(t, shop.file(t))
				t.Logf("rule %d: exit %d after %d schedules, and %d after %d by rows: %s", third, code, short.Explored, again, long.Explored, long.Unforeseen)
				if !short.Complete || long.Complete != (long.Unforeseen == "") || long.Complete && (code == shoptest.Broken) != (again == shoptest.Broken) {
					t.Errorf("exit %d and %d, complete %t and %t: %s%s", code, again, short.Complete, long.Complete, stderr, more)
				}
			}
		})
	}
}
