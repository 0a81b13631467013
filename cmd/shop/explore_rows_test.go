package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/tier"
)

// A rowsCase is a shop whose buyers use different rows, unless its database connects them. The buyers
// take the items 1, 2 and 2, 1.
type rowsCase struct {
	name          string
	schema, reset string
	sql           []string
	never         string // a state of one order only
	why           string // the reason why the search is not complete; "": it finds that state
	buyers, fails string // see statementShop
	quick         bool
	first         bool // the search has thousands of schedules, and ends with that state
}

var rowsCases = []rowsCase{
	{
		// The last wait closes the cycle, and is the victim, although it is for another row than the first.
		name: "the second buyer is the victim of a deadlock", schema: "ALTER TABLE items ADD seen INT, ADD came INT;",
		reset: "UPDATE items SET seen = 0, came = 0", never: "SELECT 1 FROM items HAVING min(seen) = 1 AND min(came) = 1", sql: crossedRows,
	},
	{
		name: "the first buyer is the victim of a deadlock", schema: "ALTER TABLE items ADD seen INT, ADD came INT;",
		reset: "UPDATE items SET seen = 0, came = 0", never: "SELECT 1 FROM items HAVING max(seen) = 2 AND min(came) = 1", sql: crossedRows,
	},
	{
		name: "a deadlock of three, whose victim is the first", schema: threeRows, reset: "UPDATE items SET seen = 0", sql: crossedThree, buyers: threeBuyers, first: true,
		never: "SELECT 1 FROM items a, items b WHERE a.id = 1 AND a.seen = 3 AND b.id = 2 AND b.seen = 2",
	},
	{
		name: "a deadlock of three, whose victim is the second", schema: threeRows, reset: "UPDATE items SET seen = 0", sql: crossedThree, buyers: threeBuyers, first: true,
		never: "SELECT 1 FROM items a, items b WHERE a.id = 2 AND a.seen = 1 AND b.id = 3 AND b.seen = 3",
	},
	{
		name: "a deadlock of three, whose victim is the third", schema: threeRows, reset: "UPDATE items SET seen = 0", sql: crossedThree, buyers: threeBuyers, first: true,
		never: "SELECT 1 FROM items a, items b WHERE a.id = 1 AND a.seen = 1 AND b.id = 3 AND b.seen = 2 AND :sold = 2",
	},
	{
		name: "the time of a row", schema: "ALTER TABLE items ADD seen INT; CREATE TABLE logs (n INT, at TIMESTAMPTZ DEFAULT clock_timestamp());",
		reset: "WITH gone AS (DELETE FROM logs) UPDATE items SET seen = 0", never: "SELECT 1 FROM items HAVING min(seen) = 2",
		sql: []string{"BEGIN", "INSERT INTO logs (n) VALUES ({0})", "COMMIT", "UPDATE items SET seen = (SELECT n FROM logs ORDER BY at LIMIT 1) WHERE id = {0}"},
	},
	{
		name: "keys that are the same in each run", schema: "ALTER TABLE items ADD seen INT; CREATE TABLE tickets (id SERIAL PRIMARY KEY, buyer INT);",
		reset: "TRUNCATE tickets RESTART IDENTITY", never: "SELECT 1 FROM items a, items b WHERE a.id = 1 AND a.seen = 2 AND b.id = 2 AND b.seen = 1",
		sql: []string{"INSERT INTO tickets (buyer) VALUES ({0})", "UPDATE items SET seen = (SELECT id FROM tickets WHERE buyer = {0}) WHERE id = {0}"},
	},
	{
		name: "a trigger", schema: `CREATE TABLE totals (id INT PRIMARY KEY, sold INT);
INSERT INTO totals VALUES (1, 0);
CREATE FUNCTION count_sale() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE totals SET sold = sold + NEW.id; RETURN NEW; END $$;
CREATE TRIGGER counts AFTER UPDATE OF stock ON items FOR EACH ROW WHEN (NEW.stock < 2) EXECUTE FUNCTION count_sale();
ALTER TABLE items ADD seen INT;`, reset: "UPDATE totals SET sold = 0", never: "SELECT * FROM totals WHERE sold > 2",
		sql: []string{"UPDATE items SET seen = 1 WHERE id = {0} AND (SELECT sold FROM totals WHERE id = 1) = 0", "UPDATE items SET stock = stock - 1 WHERE id = {0}"},
	},
	{
		name: "a view", schema: "ALTER TABLE items ADD seen INT; CREATE VIEW stock_of_all AS SELECT sum(stock) AS total FROM items;", never: "SELECT 1 FROM items HAVING sum(stock) < 3",
		sql: []string{"UPDATE items SET seen = 1 WHERE id = {0} AND (SELECT total FROM stock_of_all) = 4", "UPDATE items SET stock = stock - 1 WHERE id = {0}"},
	},
	{
		name: "a rule", schema: "ALTER TABLE items ADD seen INT; CREATE TABLE totals (n INT); INSERT INTO totals VALUES (0); CREATE RULE counts AS ON UPDATE TO items WHERE NEW.seen > 0 DO ALSO UPDATE totals SET n = n * 3 + NEW.id;",
		reset: "UPDATE totals SET n = 0", never: "SELECT * FROM totals WHERE n = 7", sql: []string{"UPDATE items SET seen = 1 WHERE id = {0}"},
	},
	{
		name: "a foreign key", schema: "ALTER TABLE items ADD seen INT; CREATE TABLE baskets (id INT PRIMARY KEY); CREATE TABLE lines (id INT PRIMARY KEY, basket INT REFERENCES baskets ON DELETE CASCADE);",
		reset: "WITH a AS (INSERT INTO baskets VALUES (1), (2) ON CONFLICT DO NOTHING) INSERT INTO lines VALUES (1, 1), (2, 2) ON CONFLICT DO NOTHING", never: "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM lines)",
		sql: []string{"UPDATE items SET seen = 1 WHERE id = {0} AND (SELECT count(*) FROM lines) = 2", "DELETE FROM baskets WHERE id = {0}"},
	},
	{
		name: "a foreign key to its own table", schema: "ALTER TABLE items ADD seen INT; CREATE TABLE tree (id INT PRIMARY KEY, up INT REFERENCES tree ON DELETE CASCADE);",
		reset: "INSERT INTO tree VALUES (1, NULL), (2, NULL), (11, 1), (12, 2) ON CONFLICT DO NOTHING", never: "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM tree)",
		sql: []string{"UPDATE items SET seen = 1 WHERE id = {0} AND (SELECT count(*) FROM tree WHERE id = 1{1}) = 1", "DELETE FROM tree WHERE id = {0}"},
	},
	{
		name: "a generated column", schema: "ALTER TABLE items ADD seen INT, ADD odd INT GENERATED ALWAYS AS (stock % 2) STORED;", never: "SELECT 1 FROM items HAVING min(odd) = 1",
		sql: []string{"UPDATE items SET seen = 1 WHERE id = {0} AND NOT EXISTS (SELECT 1 FROM items WHERE odd = 1)", "UPDATE items SET stock = 1 WHERE id = {0}"},
	},
	{
		name: "a type with its own equality", schema: "CREATE EXTENSION citext; CREATE TABLE names (name citext PRIMARY KEY, n INT); INSERT INTO names VALUES ('a', 0);",
		reset: "UPDATE names SET n = 0", never: "SELECT 1 FROM names WHERE n = 7", sql: []string{"UPDATE names SET n = n * 3 + {0} WHERE name = '{1}'"},
		buyers: "buyers:\n  - POST http://127.0.0.1:8080/buy?1,a\n  - POST http://127.0.0.1:8080/buy?2,A",
	},
	{
		name: "a unique index", schema: "CREATE TABLE seats (id INT PRIMARY KEY, seat INT UNIQUE);", fails: "500",
		sql: []string{"BEGIN", "INSERT INTO seats (id, seat) VALUES ({0}, {0})", "INSERT INTO seats (id, seat) VALUES ({0}0, {1})", "DELETE FROM seats WHERE id = {0}", "DELETE FROM seats WHERE id = {0}0", "COMMIT"},
	},
	{
		name: "a rollback to a savepoint", schema: carts, reset: "DELETE FROM carts", never: "SELECT 1 FROM items WHERE id = 1 AND seen = 2",
		sql: []string{newCart, "BEGIN", "SAVEPOINT a", "UPDATE carts SET item = 2 WHERE id = {0}", "ROLLBACK TO SAVEPOINT a", "COMMIT", fillCart, countCarts},
	},
	{
		name: "a COMMIT that rolls back", schema: carts, reset: "DELETE FROM carts", never: "SELECT 1 FROM items WHERE id = 1 AND seen = 2",
		sql: []string{newCart, "BEGIN", "UPDATE carts SET item = 2 WHERE id = {0}", "?INSERT INTO carts (id) VALUES ({0})", "COMMIT", fillCart, countCarts},
	},
	{
		name: "a connection that ends within a transaction", schema: carts, reset: "DELETE FROM carts", never: "SELECT 1 FROM items WHERE id = 1 AND seen = 2",
		why: "a program closed a connection inside a transaction", sql: []string{newCart, "BEGIN", "UPDATE carts SET item = 2 WHERE id = {0}", "!", fillCart, countCarts},
	},
	{
		name: "a row that another buyer changes", schema: carts, reset: "DELETE FROM carts", never: "SELECT 1 FROM carts WHERE n = 2",
		why: "a buyer may change a row of carts that another buyer inserted",
		sql: []string{newCart, fillCart, "update carts SET item = 9 WHERE item = 1"},
	},
	{
		name: "a trigger that comes later", quick: true, schema: "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;",
		why: "the program changed a trigger, a view, a rule, a constraint or an index", never: "SELECT 1 FROM items WHERE stock < 0",
		sql: []string{"DO $$ BEGIN DROP TRIGGER IF EXISTS late{0} ON items; CREATE TRIGGER late{0} AFTER UPDATE ON items FOR EACH ROW EXECUTE FUNCTION nothing(); END $$", "UPDATE items SET stock = stock - 1 WHERE id = {0}"},
	},
}

// A buyer fills its cart, and counts the filled ones. The explorer knows the row from its INSERT.
const (
	carts      = "ALTER TABLE items ADD seen INT; CREATE TABLE carts (id INT PRIMARY KEY, item INT, n INT);"
	newCart    = "INSERT INTO carts (id, item, n) VALUES ({0}, 1, 0)"
	fillCart   = "UPDATE carts SET n = 1 WHERE id = {0}"
	countCarts = "UPDATE items SET seen = (SELECT count(*) FROM carts WHERE item = 1 AND n = 1) WHERE id = {0}"
)

// crossedRows makes two buyers wait for each other.
var crossedRows = []string{
	"UPDATE items SET came = 1 WHERE id = {0}", "BEGIN", "UPDATE items SET seen = seen * 3 + {0} WHERE id = {0}",
	"UPDATE items SET seen = seen * 3 + {0} WHERE id = {1}", "COMMIT",
}

// In crossedThree, the first buyer has two transactions at once. They and that of the second buyer wait for
// each other. No two of them do.
var crossedThree = []string{
	"BEGIN", "?UPDATE items SET seen = seen * 5 + {0} WHERE id = {0}", "|BEGIN", "|UPDATE items SET seen = seen * 5 + {1} WHERE id = {1}",
	"|UPDATE items SET seen = seen * 5 + {1} WHERE id = {2}", "|COMMIT", "?UPDATE items SET seen = seen * 5 + {0} WHERE id = {1}", "COMMIT",
}

const (
	threeRows   = "ALTER TABLE items ADD seen INT; INSERT INTO items VALUES (3, 2);"
	threeBuyers = "buyers:\n  - POST http://127.0.0.1:8080/buy?1,2,3\n  - POST http://127.0.0.1:8080/buy?3,1"
)

const rowsBuyers = "buyers:\n  - POST http://127.0.0.1:8080/buy?1,2\n  - POST http://127.0.0.1:8080/buy?2,1"

// TestAppRows: the search of a long program on PostgreSQL leaves out the orders of commands that use
// different rows. A statement may use the other buyer's rows without naming them. Each of these shops breaks
// in an order that would then be left out, or its search is not complete. The same shop without the
// savepoints is too short for this, and gives the same result.
func TestAppRows(t *testing.T) {
	tier.Soak(t, "starts programs and servers; internal/explore/effect finds rows that commands share")
	t.Parallel()
	for _, c := range rowsCases {
		t.Run(c.name, func(t *testing.T) {
			if !c.quick {
				tier.Soak(t, "a search of a program with 100 commands")
			}
			shop := statementShop{database: "postgres", sql: append(padding(), c.sql...), buyers: cmp.Or(c.buyers, rowsBuyers), schema: c.schema, reset: c.reset, never: c.never, fails: cmp.Or(c.fails, "503")}
			var args []string
			if c.first {
				args = append(args, "--first")
			}
			code, r, stderr := searchFile(t, shop.file(t), args...)
			if c.first {
				if code != exitBroken || r.Unforeseen != "" {
					t.Errorf("exit %d, %d explored, %s: %s", code, r.Explored, r.Unforeseen, stderr)
				}
				return
			}
			if c.why != "" {
				if r.Complete || !strings.HasPrefix(r.Unforeseen, c.why) {
					t.Errorf("exit %d, complete %t, %q: %s", code, r.Complete, r.Unforeseen, stderr)
				}
				return
			}
			if code != exitBroken || !r.Complete || r.Explored > 400 {
				t.Errorf("exit %d, %d explored, complete %t, %s: %s", code, r.Explored, r.Complete, r.Unforeseen, stderr)
			}
			if !tier.Soaking() {
				return
			}
			shop.sql = c.sql
			if code, short, stderr := searchFile(t, shop.file(t)); code != exitBroken || !short.Complete || short.Explored < r.Explored {
				t.Errorf("the short program: exit %d, %d explored, complete %t: %s", code, short.Explored, short.Complete, stderr)
			}
		})
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
	tier.Soak(t, "searches of random programs, for minutes")
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
				code, short, stderr := searchFile(t, shop.file(t))
				shop.sql = append(padding(), sql...)
				again, long, more := searchFile(t, shop.file(t))
				t.Logf("rule %d: exit %d after %d schedules, and %d after %d by rows: %s", third, code, short.Explored, again, long.Explored, long.Unforeseen)
				if !short.Complete || long.Complete != (long.Unforeseen == "") || long.Complete && (code == exitBroken) != (again == exitBroken) {
					t.Errorf("exit %d and %d, complete %t and %t: %s%s", code, again, short.Complete, long.Complete, stderr, more)
				}
			}
		})
	}
}

// TestAppRowsOfTheirOwn: if no command meets another buyer's, one schedule is enough.
func TestAppRowsOfTheirOwn(t *testing.T) {
	tier.Soak(t, "starts programs and servers; internal/explore/effect finds rows that commands share")
	t.Parallel()
	sql := []string{}
	for n := range 50 {
		sql = append(sql, fmt.Sprintf("SELECT stock + %d FROM items WHERE id = {0}", n), fmt.Sprintf("SELECT item_id + %d FROM orders WHERE item_id = {0}", n))
	}
	sql = append(sql, "BEGIN;", "UPDATE items SET stock = stock - 1 WHERE id = {0}", "INSERT INTO orders (item_id) VALUES ({0})", "COMMIT;")
	file := statementShop{database: "postgres", sql: sql, buyers: rowsBuyers}.file(t)
	code, r, stderr := searchFile(t, file)
	if code != exitInconclusive || !r.Complete || r.Explored != 1 || r.Runs != 1 {
		t.Errorf("exit %d, %d explored in %d runs, complete %t, %s: %s; the buyers use different rows", code, r.Explored, r.Runs, r.Complete, r.Unforeseen, stderr)
	}
	if code, stdout, stderr := exploreApp(t, file, "--app-check"); code != 0 || strings.Contains(stdout, "can meet") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
