package effect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

func routines(texts map[string]string) map[string][]*effect.Routine {
	all := map[string][]*effect.Routine{}
	for name, text := range texts {
		name, params, _ := strings.Cut(name, "(")
		r := &effect.Routine{Schema: "public", Name: name, Text: text, Fresh: true, Reads: true, Writes: true, Procedure: strings.HasPrefix(name, "p_")}
		if params = strings.TrimSuffix(params, ")"); params != "" {
			r.Params = strings.Split(params, ",")
			r.Min, r.Max = len(r.Params), len(r.Params)
		}
		all[name] = append(all[name], r)
	}
	return all
}

// The functions of TestUses.
var bodies = map[string]string{
	"take(w)": `DECLARE found jobs; BEGIN SELECT j.* INTO found FROM jobs j WHERE NOT EXISTS (SELECT 1 FROM jobs r WHERE r.lock = j.lock) FOR UPDATE OF j SKIP LOCKED;
		IF found.id IS NULL THEN RETURN NULL; END IF; UPDATE jobs SET worker = w WHERE id = found.id; RETURN found; END`,
	"take_locked(w)": `BEGIN PERFORM pg_advisory_xact_lock(7); IF (SELECT count(*) FROM jobs) > 0 THEN UPDATE jobs SET worker = w; END IF; END`,
	"sell(i)": `DECLARE n INT; BEGIN SELECT stock INTO n FROM items WHERE id = i FOR UPDATE; IF n > 0 THEN UPDATE items SET stock = n - 1 WHERE id = i;
		IF (SELECT count(*) FROM orders WHERE item = i) = 0 THEN INSERT INTO orders VALUES (i); END IF; END IF; END`,
	"assigns":    "DECLARE n INT; BEGIN n := count(*) FROM orders; INSERT INTO log VALUES (n); END",
	"loops":      "BEGIN FOR r IN SELECT * FROM orders LOOP UPDATE items SET stock = 0 WHERE id = r.id; END LOOP; END",
	"stamps":     "BEGIN NEW.at = now(); RETURN NEW; END",
	"counts":     "BEGIN SELECT max(n) + 1 INTO NEW.n FROM orders WHERE team = NEW.team; RETURN NEW; END",
	"counts_one": "BEGIN PERFORM pg_advisory_xact_lock(hashtext(NEW.team)); SELECT max(n) + 1 INTO NEW.n FROM orders WHERE team = NEW.team; RETURN NEW; END",
	"nested":     "BEGIN PERFORM assigns(); END",
	"dynamic":    "BEGIN EXECUTE format('UPDATE %I SET a = 1', 'items'); END",
	"checks(i)":  "BEGIN UPDATE items SET stock = stock - 1 WHERE id = i; IF (SELECT stock FROM items WHERE id = i) < 0 THEN RAISE 'sold out'; END IF; END",
	"literal":    "BEGIN EXECUTE 'UPDATE items SET stock = 0'; END",
	"commits":    "BEGIN UPDATE items SET stock = 0 WHERE id = 1; COMMIT; INSERT INTO orders VALUES (1); END",
	"total":      "SELECT sum(stock) FROM items",
	"p_sell(i)":  "BEGIN START TRANSACTION; UPDATE items SET stock = stock - 1 WHERE id = i AND stock > 0; IF ROW_COUNT() = 1 THEN INSERT INTO orders VALUES (i); END IF; COMMIT; END",
	"p_leaves(i)": `sell: BEGIN DECLARE n INT; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; START TRANSACTION; SELECT stock INTO n FROM items WHERE id = i FOR UPDATE;
		IF n < 1 THEN ROLLBACK; LEAVE sell; END IF; IF (SELECT count(*) FROM orders) > 9 THEN ROLLBACK; LEAVE sell; END IF; UPDATE items SET stock = n - 1 WHERE id = i; INSERT INTO orders VALUES (i); COMMIT; END`,
	"p_loops(i)": "BEGIN WHILE i > 0 DO START TRANSACTION; UPDATE items SET stock = 0 WHERE id = i; COMMIT; SET i = i - 1; END WHILE; END",
	"p_after(i)": "BEGIN IF i > 0 THEN SET i = 1; END IF; START TRANSACTION; UPDATE items SET stock = 0 WHERE id = i; COMMIT; INSERT INTO orders VALUES (i); END",
	"p_parts(i)": "BEGIN UPDATE items SET stock = stock - 1 WHERE id = i; INSERT INTO orders VALUES (i); END",
	"p_looks(i)": "BEGIN DECLARE n INT DEFAULT 0; START TRANSACTION; SELECT stock INTO n FROM items WHERE id = i; IF n > 0 THEN UPDATE items SET stock = n - 1; END IF; COMMIT; END",
	"p_locks(i)": `BEGIN START TRANSACTION; SELECT stock INTO @n FROM items WHERE id = i FOR UPDATE; SELECT count(*) INTO @m FROM orders; INSERT INTO orders VALUES (i); COMMIT; END`,
	"format(v)":  "UPDATE items SET stock = v",
}

func catalog(d effect.Dialect) *effect.Catalog {
	all := routines(bodies)
	all["opaque"] = []*effect.Routine{{Schema: "public", Name: "opaque", Reads: true, Writes: true}}
	all["looks"] = []*effect.Routine{{Schema: "public", Name: "looks", Reads: true}}
	return &effect.Catalog{
		Dialect: d, Routines: all,
		Tables: map[string]*effect.Relation{
			"items": {}, "jobs": {}, "log": {},
			"orders":   {Deletes: []effect.Cascade{{Table: "lines"}}, Updates: []effect.Cascade{{Table: "lines", Of: []string{"id"}}}},
			"lines":    {Code: []effect.Code{{Name: "trigger shrinks", On: effect.Deletes, Text: "UPDATE items SET stock = (SELECT count(*) FROM lines)"}}},
			"tickets":  {Code: []effect.Code{{Name: "trigger numbers", On: effect.Inserts, Run: all["counts"][0]}}},
			"locked":   {Code: []effect.Code{{Name: "trigger numbers", On: effect.Inserts, Run: all["counts_one"][0]}}},
			"stamped":  {Code: []effect.Code{{Name: "trigger stamps", On: effect.Inserts | effect.Updates, Run: all["stamps"][0]}}},
			"closed":   {Code: []effect.Code{{Name: "trigger numbers", On: effect.Updates, Of: []string{"state"}, Run: all["counts"][0]}}},
			"checked":  {Code: []effect.Code{{On: effect.Inserts | effect.Updates, Text: "(total() > 0)"}}},
			"late":     {Code: []effect.Code{{Name: "trigger numbers", On: effect.Inserts, Run: all["counts"][0], Late: true}}},
			"all_jobs": {View: "SELECT id, worker FROM jobs"},
			"taking":   {View: "SELECT id, take('a') FROM items"},
			"inserted": {View: "SELECT id FROM jobs", Code: []effect.Code{{Name: "trigger numbers", On: effect.Inserts, Run: all["counts"][0]}}},
			"whole":    {Parts: []string{"part"}}, "part": {Parts: []string{"whole"}},
		},
	}
}

// TestUses: the Uses of a statement include those of the code that it runs.
func TestUses(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT id FROM take('a')":                                "reads jobs, writes jobs, 1 scan, runs function take",
		"SELECT take_locked('a')":                                 "reads jobs, writes jobs, 1 scan, guard pg_advisory_xact_lock(7), runs function take_locked",
		"SELECT sell(1)":                                          "reads orders, writes items orders, 1 scan, guard row items where id = 1, runs function sell",
		"SELECT sell(n) FROM items":                               "reads items orders, writes items orders, 2 scans, runs function sell",
		"SELECT assigns()":                                        "reads orders, writes log, 1 scan, runs function assigns",
		"SELECT nested()":                                         "reads orders, writes log, 1 scan, runs function nested, function assigns",
		"SELECT loops()":                                          "reads orders, writes items, 2 scans, runs function loops",
		"SELECT checks(1)":                                        "reads items, writes items, 1 scan, guard row items where id = 1, runs function checks",
		"UPDATE items SET stock = 0 WHERE id = 1":                 "writes items, guard row items where id = 1",
		"SELECT dynamic()":                                        "any, runs function dynamic, a statement that is composed or was prepared",
		"SELECT literal()":                                        "writes items, runs function literal",
		"SELECT opaque()":                                         "any, runs function opaque",
		"SELECT looks()":                                          "reads *, 1 scan, runs function looks",
		"SELECT total()":                                          "reads items, 1 scan, runs function total",
		"SELECT public.total()":                                   "reads items, 1 scan, runs function total",
		"SELECT other.total()":                                    "",
		"SELECT format(1)":                                        "writes items, runs function format",
		"SELECT format('a', 1)":                                   "",
		"SELECT unknown(1)":                                       "",
		"INSERT INTO tickets VALUES (1)":                          "reads orders, writes tickets, 1 scan, runs trigger numbers",
		"INSERT INTO tickets VALUES (1), (2)":                     "reads orders, writes tickets, 2 scans, runs trigger numbers",
		"INSERT INTO locked (team) VALUES ('a')":                  "reads orders, writes locked, 1 scan, guard pg_advisory_xact_lock(hashtext('a')), runs trigger numbers",
		"INSERT INTO locked (id) VALUES ('a')":                    "reads orders, writes locked, 1 scan, runs trigger numbers",
		"COPY tickets (id) FROM STDIN":                            "reads orders, writes tickets, 2 scans, runs trigger numbers",
		"UPDATE tickets SET n = 1":                                "writes tickets",
		"INSERT INTO stamped VALUES (1)":                          "writes stamped",
		"UPDATE closed SET title = 'a' WHERE state = 1":           "writes closed, guard row closed where state = 1",
		"UPDATE closed SET state = 2":                             "reads orders, writes closed, 1 scan, runs trigger numbers",
		"INSERT INTO checked VALUES (1)":                          "reads items, writes checked, 1 scan, runs function total",
		"INSERT INTO late VALUES (1)":                             "reads orders, writes late, 10000 scans, runs trigger numbers",
		"DELETE FROM orders WHERE id = 1":                         "reads lines, writes items lines orders, 2 scans, runs trigger shrinks",
		"UPDATE orders SET item = 1 WHERE id = 1":                 "writes orders, guard row orders where id = 1",
		"UPDATE orders SET id = 1":                                "writes lines orders",
		"SELECT * FROM taking":                                    "reads items jobs, writes jobs, 2 scans, runs function take",
		"UPDATE all_jobs SET worker = 'a'":                        "writes jobs",
		"INSERT INTO inserted VALUES (1)":                         "reads orders, 1 scan, runs trigger numbers",
		"INSERT INTO whole SELECT * FROM whole":                   "reads part whole, writes part whole, 1 scan",
		"INSERT INTO items SELECT * FROM temporary":               "writes items",
		"SELECT 1 FROM items FOR UPDATE":                          "",
		"SELECT stock FROM items; UPDATE items SET stock = 0":     "reads items, writes items, 1 scan",
		"DO $$ BEGIN PERFORM take('a'); END $$":                   "reads jobs, writes jobs, 1 scan, runs a block, function take",
		"DO $$ BEGIN UPDATE items SET stock = stock - 1; END $$":  "writes items, runs a block",
		"CALL p_parts(1)":                                         "writes items orders, guard row items where id = 1, runs procedure p_parts",
		"SELECT commits()":                                        "reads items orders, writes items orders, torn, torn inside, controls, runs function commits",
		"EXECUTE buys(1)":                                         "any, runs a statement that is composed or was prepared",
		"WITH a AS (SELECT id FROM jobs) INSERT INTO log TABLE a": "reads jobs, writes log, 1 scan",
		"BEGIN; SELECT stock FROM items WHERE id = 1 FOR UPDATE; SELECT count(*) FROM orders; INSERT INTO orders VALUES (1); COMMIT": "reads orders, writes orders, 1 scan, guard row items where id = 1, controls",
	} {
		if got := described(catalog(effect.Postgres).Uses(sql)); got != want {
			t.Errorf("PostgreSQL: %s:\n%s\nwant\n%s", sql, got, want)
		}
	}
	for sql, want := range map[string]string{
		"CALL p_sell(1)":                         "writes items orders, controls, runs procedure p_sell",
		"CALL p_parts(1)":                        "reads items orders, writes items orders, torn, runs procedure p_parts",
		"CALL p_leaves(1)":                       "reads orders, writes items orders, 1 scan, guard row items where id = 1, controls, runs procedure p_leaves",
		"CALL p_loops(1)":                        "reads items, writes items, torn, torn inside, controls, runs procedure p_loops",
		"CALL p_after(1)":                        "reads items orders, writes items orders, torn, torn inside, controls, runs procedure p_after",
		"CALL p_looks(1)":                        "reads items, writes items, 1 scan, controls, runs procedure p_looks",
		"CALL p_locks(1)":                        "reads orders, writes orders, 1 scan, guard row items where id = 1, controls, runs procedure p_locks",
		"SELECT format(1)":                       "",
		"SELECT sell(1)":                         "reads orders, writes items orders, 1 scan, runs function sell",
		"UPDATE items i JOIN jobs j SET j.a = 1": "writes items jobs",
		"SET autocommit = 0; DELETE FROM log; DELETE FROM items; COMMIT": "writes items log, controls",
		"INSERT INTO log VALUES (1); DELETE FROM items":                  "reads items log, writes items log, torn",
	} {
		if got := described(catalog(effect.MySQL).Uses(sql)); got != want {
			t.Errorf("MySQL: %s:\n%s\nwant\n%s", sql, got, want)
		}
	}
}

// TestUsesHidden: if the user may not read the code, each function that is not built in may do
// anything.
func TestUsesHidden(t *testing.T) {
	c := &effect.Catalog{Dialect: effect.MySQL, Hidden: true}
	for sql, want := range map[string]string{
		"SELECT take(1)": "any, runs function take",
		"CALL take(1)":   "any, runs function take",
		"INSERT INTO orders (id) SELECT max(id) FROM orders WHERE GET_LOCK('a', 1)": "reads orders, writes orders, 1 scan",
	} {
		if got := described(c.Uses(sql)); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

// TestHolds: Holds lists each named lock, even if the text only tries to take it or a function takes
// it, and each lock on a whole table.
func TestHolds(t *testing.T) {
	for _, c := range []struct {
		d         effect.Dialect
		sql, want string
	}{
		{effect.MySQL, "SELECT GET_LOCK('a', 1)", effect.NamedLocks},
		{effect.MySQL, "DO release_lock('a')", effect.NamedLocks},
		{effect.MySQL, "LOCK TABLES items WRITE, orders READ", "items orders"},
		{effect.MySQL, "SELECT * FROM items FOR UPDATE", ""},
		{effect.Postgres, "SELECT pg_catalog.pg_try_advisory_xact_lock(7)", effect.NamedLocks},
		{effect.Postgres, "SELECT take_locked('a')", effect.NamedLocks},
		{effect.Postgres, "LOCK TABLE ONLY public.jobs IN SHARE MODE NOWAIT", "jobs"},
		{effect.Postgres, "SELECT 'get_lock(1)', pg_sleep(1)", ""},
	} {
		if got := strings.Join(catalog(c.d).Uses(c.sql).Holds, " "); got != c.want {
			t.Errorf("%s: holds %q, want %q", c.sql, got, c.want)
		}
	}
}

// TestWith: the code that a text runs can change its Effect and its Inside.
func TestWith(t *testing.T) {
	for _, c := range []struct {
		sql    string
		inside effect.Inside
		effect schedule.Effect
	}{
		{"SELECT id FROM take('a')", effect.Divided, schedule.Writes},
		{"SELECT * FROM taking", effect.Divided, schedule.Writes},
		{"SELECT format('a', 1)", effect.Atomic, schedule.Reads},
		{"SELECT format(1)", effect.Atomic, schedule.Writes},
		{"INSERT INTO items SELECT * FROM temporary", effect.Atomic, schedule.Writes},
		{"INSERT INTO items SELECT * FROM jobs", effect.Lockable, schedule.Writes},
		{"CALL p_looks(1)", effect.Divided, schedule.Writes},
		{"CALL p_sell(1)", effect.Atomic, schedule.Writes},
		{"SELECT stock FROM items; UPDATE items SET stock = 0", effect.Divided, schedule.Writes},
	} {
		for _, d := range []effect.Dialect{effect.MySQL, effect.Postgres} {
			if d == effect.MySQL && strings.Contains(c.sql, "format") {
				continue // MySQL has a built-in function format
			}
			if got := effect.With(catalog(d), c.sql, d); got.Inside != c.inside || got.Effect != c.effect {
				t.Errorf("%d: %s: %d, %v; want %d, %v", d, c.sql, got.Inside, got.Effect, c.inside, c.effect)
			}
		}
	}
}

// TestSkews: Skews is true for code that only reads, if another write can come between two of its
// reads.
func TestSkews(t *testing.T) {
	c := &effect.Catalog{Dialect: effect.Postgres, Tables: map[string]*effect.Relation{"items": {}, "orders": {}, "log": {}}}
	c.Routines = routines(map[string]string{
		"left":    "BEGIN RETURN (SELECT sum(stock) FROM items) - (SELECT count(*) FROM orders); END",
		"leaves":  "DECLARE a INT; BEGIN SELECT sum(stock) INTO a FROM items; RETURN a - (SELECT count(*) FROM orders); END",
		"stable":  "DECLARE a INT; BEGIN SELECT sum(stock) INTO a FROM items; RETURN a - (SELECT count(*) FROM orders); END",
		"twice":   "BEGIN PERFORM stable(); RETURN stable(); END",
		"loops":   "BEGIN FOR i IN 1..2 LOOP PERFORM count(*) FROM orders; END LOOP; END",
		"records": "DECLARE a INT; BEGIN SELECT sum(stock) INTO a FROM items; INSERT INTO log VALUES (a - (SELECT count(*) FROM orders)); END",
	})
	c.Routines["stable"][0].Fresh = false
	for sql, want := range map[string]bool{
		"SELECT left()": false, "SELECT leaves()": true, "SELECT stable()": false, "SELECT twice()": true, "SELECT loops()": true,
		"SELECT left() FROM items": true, "SELECT stable() FROM items": false, "SELECT * FROM items, orders": false,
		"SELECT records()": false, // Inside reports the statement as Divided
	} {
		if got := effect.With(c, sql, effect.Postgres).Skews; got != want {
			t.Errorf("%s: %t, want %t; %s", sql, got, want, described(c.Uses(sql)))
		}
	}
}

func described(u *effect.Uses) string {
	var all []string
	add := func(what string, is bool) {
		if is {
			all = append(all, what)
		}
	}
	add("any", u.Any)
	add("reads "+strings.Join(u.Reads, " "), len(u.Reads) > 0)
	add("writes "+strings.Join(u.Writes, " "), len(u.Writes) > 0)
	add(fmt.Sprintf("%d scan%s", u.Scans, map[bool]string{u.Scans != 1: "s"}[true]), u.Scans > 0 && !u.Any)
	add("torn", u.Torn)
	add("torn inside", u.TornInside)
	add("guard "+u.Guard, u.Guard != "")
	add("controls", u.Controls)
	add("runs "+strings.Join(u.Runs, ", "), len(u.Runs) > 0)
	return strings.Join(all, ", ")
}
