package program_test

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// The functions of TestAppCatalog for PostgreSQL.
const (
	freeFunction = "CREATE FUNCTION free() RETURNS boolean LANGUAGE sql AS 'SELECT count(*) < 1 FROM orders';\n"
	takeFunction = `CREATE FUNCTION take(v int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN
		SELECT stock INTO n FROM items WHERE id = v; IF n > 1 THEN UPDATE items SET stock = n - 1 WHERE id = v; INSERT INTO orders VALUES (v); END IF; RETURN n; END $$;` + "\n"
	onlyOne = `CREATE FUNCTION one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF (SELECT count(*) FROM orders) > 0 THEN RETURN NULL; END IF; RETURN NEW; END $$;` + "\n"
	order      = "INSERT INTO orders (item_id) VALUES (1)"
	twiceTaken = "SELECT n FROM orders GROUP BY n HAVING count(*) > 1"
)

const takeMariaDB = "DELIMITER //\nCREATE FUNCTION take(v INT) RETURNS INT MODIFIES SQL DATA BEGIN DECLARE n INT;" + takeBody + "RETURN n; END //\nDELIMITER ;"

const takeBody = ` SELECT stock INTO n FROM items WHERE id = v; IF n > 1 THEN UPDATE items SET stock = n - 1 WHERE id = v; INSERT INTO orders VALUES (v); END IF; `

// catalogCase is a program whose statements run code of the database.
type catalogCase struct {
	name     string
	postgres bool
	schema   string
	sql      []string
	never    string
	code     int    // exit code of the search
	overlap  int    // exit code with --overlap
	runs     string // the code that the result names
}

var catalogCases = []catalogCase{
	{"a trigger that counts", true, onlyOne + "CREATE TRIGGER one BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION one();", []string{order}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "trigger one"},
	{"a trigger of a view", true, `CREATE VIEW sales AS SELECT item_id FROM orders; CREATE FUNCTION sell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF (SELECT count(*) FROM orders) = 0 THEN INSERT INTO orders VALUES (NEW.item_id); END IF; RETURN NEW; END $$;
		CREATE TRIGGER sell INSTEAD OF INSERT ON sales FOR EACH ROW EXECUTE FUNCTION sell();`, []string{"INSERT INTO sales VALUES (1)"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "trigger sell"},
	{"a view", true, "CREATE VIEW sales AS SELECT item_id FROM orders;", []string{"INSERT INTO sales SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM orders)"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, ""},
	{"a rule", true, "CREATE TABLE sales (id int); CREATE RULE sells AS ON INSERT TO sales DO INSTEAD INSERT INTO orders SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM orders);", []string{"INSERT INTO sales VALUES (1)"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "rule sells"},
	{"a default", true, "CREATE FUNCTION place() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) + 1 FROM orders'; ALTER TABLE orders ADD n bigint DEFAULT place();", []string{order}, twiceTaken, shoptest.Inconclusive, shoptest.Broken, "function place"},
	{"a generated column", true, "CREATE FUNCTION place(v int) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT count(*) + v FROM orders'; ALTER TABLE orders ADD n bigint GENERATED ALWAYS AS (place(item_id)) STORED;", []string{order}, twiceTaken, shoptest.Inconclusive, shoptest.Broken, "function place"},
	{"a check", true, freeFunction + "ALTER TABLE orders ADD CHECK (free());", []string{"?" + order}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "function free"},
	{"a condition", true, freeFunction, []string{"UPDATE items SET stock = stock - 1 WHERE id = 1 AND free()", order}, "", shoptest.Inconclusive, 0, "function free"},
	{"a cascade", true, `CREATE TABLE carts (id int PRIMARY KEY); CREATE TABLE lines (cart int REFERENCES carts ON DELETE CASCADE); INSERT INTO carts VALUES (1), (2);
		CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE items SET stock = (SELECT count(*) FROM lines); RETURN NULL; END $$;
		CREATE TRIGGER counts AFTER DELETE ON lines FOR EACH ROW EXECUTE FUNCTION counts();`, []string{"?DELETE FROM carts WHERE id = 1"}, "", shoptest.Inconclusive, shoptest.Inconclusive, "trigger counts"},
	{"a function", true, takeFunction, []string{"SELECT take(1)"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "function take"},
	{"a function in a stable one", true, takeFunction + "CREATE FUNCTION calls() RETURNS int STABLE LANGUAGE sql AS 'SELECT take(1)';", []string{"SELECT calls()"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "function calls, function take"},
	{"a function in a view", true, takeFunction + "CREATE VIEW takes AS SELECT take(id) FROM items WHERE id = 1;", []string{"SELECT * FROM takes"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "function take"},
	{"a block", true, takeFunction, []string{"DO $$ BEGIN PERFORM take(1); END $$"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "function take"},
	{"a procedure", true, takeFunction + "CREATE PROCEDURE takes() LANGUAGE plpgsql AS $$ BEGIN PERFORM take(1); END $$;", []string{"CALL takes()"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "procedure takes, function take"},
	{"a procedure that commits", true, "CREATE PROCEDURE sells() LANGUAGE plpgsql AS $$ BEGIN UPDATE items SET stock = stock - 1 WHERE id = 1; COMMIT; INSERT INTO orders VALUES (1); END $$;", []string{"CALL sells()"}, "", shoptest.Inconclusive, shoptest.Inconclusive, "procedure sells"},
	{"a composed statement", true, "CREATE FUNCTION sells() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET stock = stock - 1', 'items'); END $$;", []string{"SELECT sells()"}, "", shoptest.Inconclusive, shoptest.Inconclusive, "function sells"},
	{"a late trigger", true, `CREATE FUNCTION one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF (SELECT count(*) FROM orders) > 1 THEN RAISE 'sold out'; END IF; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER one AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION one();`, []string{"?" + order}, oneOrder, shoptest.Inconclusive, shoptest.Inconclusive, "trigger one"},
	{"a packet that reads", true, "", []string{"SELECT stock FROM items WHERE id = 1; UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0"}, "", shoptest.Inconclusive, shoptest.Inconclusive, ""},

	{"a packet of two writes", true, "", []string{takesOne + "; " + order}, "", 0, 0, ""},
	{"a packet under a lock", true, "", []string{"SELECT stock FROM items WHERE id = 1 FOR UPDATE; SELECT count(*) FROM orders; " + order}, "", 0, 0, ""},
	{"a function under a lock", true, takeFunction + "CREATE FUNCTION locks() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN take(1); END $$;", []string{"SELECT locks()"}, oneOrder, 0, 0, ""},
	{"a trigger that stamps", true, "ALTER TABLE orders ADD at timestamp; CREATE FUNCTION stamps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.at = now(); RETURN NEW; END $$; CREATE TRIGGER stamps BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION stamps();", []string{order}, "", 0, 0, ""},
	{"a trigger that takes", true, `CREATE FUNCTION takes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE items SET stock = stock - 1 WHERE id = NEW.item_id AND stock > 1; IF NOT FOUND THEN RETURN NULL; END IF; RETURN NEW; END $$;
		CREATE TRIGGER takes BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION takes();`, []string{order}, oneOrder, 0, 0, ""},
	{"another function of the name", true, takeFunction + "CREATE FUNCTION take(v text) RETURNS int LANGUAGE sql AS 'UPDATE items SET stock = stock - 1 WHERE id = 1; SELECT 1'; CREATE FUNCTION take() RETURNS int LANGUAGE sql AS 'UPDATE items SET stock = stock - 1 WHERE id = 1; SELECT 1';", []string{"SELECT take()"}, "", 0, 0, ""},
	{"a function with the name of the server's", true, "CREATE SCHEMA app; CREATE FUNCTION app.now() RETURNS int LANGUAGE sql AS 'INSERT INTO orders SELECT count(*) FROM orders; SELECT 1';", []string{"UPDATE items SET stock = stock - 1 WHERE now() > '2000-01-01'"}, "", 0, 0, ""},
	{"the same, with its schema", true, "CREATE SCHEMA app; CREATE FUNCTION app.now() RETURNS int LANGUAGE sql AS 'INSERT INTO orders SELECT count(*) FROM orders; SELECT 1';", []string{"SELECT app.now()"}, "", shoptest.Inconclusive, 0, "function now"},

	{"a trigger that counts", false, "CREATE TRIGGER one BEFORE INSERT ON orders FOR EACH ROW SET NEW.item_id = (SELECT count(*) + 1 FROM orders);", []string{order}, "", shoptest.Inconclusive, shoptest.Inconclusive, "trigger one"},
	{"a function", false, takeMariaDB, []string{"SELECT take(1)"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "function take"},
	{"a function that claims to be none", false, "DELIMITER //\nCREATE FUNCTION take(v INT) RETURNS INT NO SQL BEGIN DECLARE n INT;" + takeBody + "RETURN n; END //\nDELIMITER ;", []string{"SELECT take(1)"}, oneOrder, shoptest.Inconclusive, shoptest.Broken, "function take"},
	{"a procedure", false, "DELIMITER //\nCREATE PROCEDURE take(v INT) BEGIN DECLARE n INT; START TRANSACTION;" + takeBody + "COMMIT; END //\nDELIMITER ;", []string{"CALL take(1)"}, "", shoptest.Inconclusive, shoptest.Inconclusive, "procedure take"},
	{"a procedure in several transactions", false, "DELIMITER //\nCREATE PROCEDURE sell(v INT) BEGIN UPDATE items SET stock = stock - 1 WHERE id = v; INSERT INTO orders VALUES (v); END //\nDELIMITER ;", []string{"CALL sell(1)"}, "", shoptest.Inconclusive, shoptest.Inconclusive, "procedure sell"},
	{"a block", false, "", []string{"BEGIN NOT ATOMIC DECLARE n INT; SELECT stock INTO n FROM items WHERE id = 1; UPDATE items SET stock = n - 1 WHERE id = 1; END"}, "", shoptest.Inconclusive, shoptest.Inconclusive, ""},

	{"a procedure in one transaction", false, "DELIMITER //\nCREATE PROCEDURE sell(v INT) BEGIN START TRANSACTION; UPDATE items SET stock = stock - 1 WHERE id = v AND stock > 1; IF ROW_COUNT() = 1 THEN INSERT INTO orders VALUES (v); END IF; COMMIT; END //\nDELIMITER ;", []string{"CALL sell(1)"}, oneOrder, 0, 0, ""},
	{"a trigger that takes", false, "CREATE TRIGGER takes BEFORE INSERT ON orders FOR EACH ROW UPDATE items SET stock = stock - 1 WHERE id = NEW.item_id;", []string{order}, "", 0, 0, ""},
	{"a trigger that looks at what no buyer writes", false, "CREATE TABLE prices (id INT PRIMARY KEY, price INT); CREATE TRIGGER looks BEFORE INSERT ON orders FOR EACH ROW SET NEW.item_id = COALESCE((SELECT price FROM prices WHERE id = NEW.item_id), 1);", []string{order}, "", 0, 0, ""},
}

// TestAppCatalog: the effects of a statement include those of the code that the database runs inside
// it. If another buyer's write could come in between, the exit code is 3. --overlap then finds the race
// in the cases that it can explore.
func TestAppCatalog(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	t.Parallel()
	for _, c := range catalogCases {
		database := map[bool]string{true: "postgres", false: "mysql"}[c.postgres]
		t.Run(database+", "+c.name, func(t *testing.T) {
			file := statementShop{database: database, sql: c.sql, never: c.never, schema: c.schema}.file(t)
			code, r, stderr := search(t, file)
			if code != c.code || r.Explored < 2 || code != 0 && !strings.Contains(strings.Join(r.Divided, " | "), c.runs) || code == 0 && r.Divided != nil {
				t.Errorf("exit %d, %q; want %d, %q: %s", code, r.Divided, c.code, c.runs, stderr)
			}
			if code, r, stderr := search(t, file, "--overlap"); code != c.overlap || r.Explored < 2 {
				t.Errorf("--overlap: exit %d, %q; want %d: %s", code, r.Divided, c.overlap, stderr)
			}
		})
	}
}
