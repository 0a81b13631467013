package explore_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/require"
)

// checkCatalog runs statements, and compares the catalog's answers about other statements.
func checkCatalog(t *testing.T, db *sql.DB, protocol string, statements []string, want map[string]string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	c, err := serverstate.ReadCatalog(t.Context(), db, protocol)
	require.NoError(t, err)
	for sql, says := range want {
		u := c.Uses(sql)
		if got := fmt.Sprint(u.Reads, u.Writes, u.Any, u.Scans, u.Torn, u.Runs); got != says {
			t.Errorf("%s: %s, want %s", sql, got, says)
		}
	}
}

// TestCatalogMySQL: ReadCatalog finds the code that runs inside a statement.
func TestCatalogMySQL(t *testing.T) {
	db, err := enginetest.Local(t).DB.DB()
	require.NoError(t, err)
	checkCatalog(t, db, "mysql", []string{
		"CREATE TABLE f_items (id int PRIMARY KEY, stock int)",
		"CREATE TABLE F_Orders (id int PRIMARY KEY, item int, FOREIGN KEY (item) REFERENCES f_items (id) ON DELETE CASCADE ON UPDATE SET NULL)",
		"CREATE FUNCTION F_Take(v int) RETURNS int NO SQL BEGIN DECLARE n int; SELECT stock INTO n FROM f_items WHERE id = v; UPDATE f_items SET stock = n - 1; RETURN n; END",
		"CREATE PROCEDURE f_sell(v int) BEGIN UPDATE f_items SET stock = stock - 1 WHERE id = v; INSERT INTO F_Orders VALUES (v, v); END",
		"CREATE TRIGGER f_counts BEFORE INSERT ON F_Orders FOR EACH ROW SET NEW.id = (SELECT count(*) FROM f_orders)",
		"CREATE VIEW f_view AS SELECT id, stock FROM f_items",
	}, map[string]string{
		"SELECT f_take(1)":                     "[f_items] [f_items] false 1 false [function f_take]",
		"SELECT f_take(1, 2)":                  "[] [] false 0 false []",
		"CALL f_sell(1)":                       "[f_items f_orders] [f_items f_orders] false 1 true [procedure f_sell trigger f_counts]",
		"INSERT INTO F_Orders VALUES (1, 1)":   "[f_orders] [f_orders] false 1 false [trigger f_counts]",
		"UPDATE f_orders SET item = 1":         "[] [f_orders] false 0 false []",
		"DELETE FROM f_items":                  "[] [f_items f_orders] false 0 false []",
		"UPDATE f_items SET stock = 1":         "[] [f_items] false 0 false []",
		"UPDATE f_items SET id = 1":            "[] [f_items f_orders] false 0 false []",
		"UPDATE f_view SET stock = 1":          "[] [f_items] false 0 false []",
		"INSERT INTO f_view SELECT * FROM own": "[] [f_items] false 0 false []",
	})
}

// TestCatalogPostgres is TestCatalogMySQL for PostgreSQL.
func TestCatalogPostgres(t *testing.T) {
	db, err := enginetest.Postgres(t).Admin.DB()
	require.NoError(t, err)
	checkCatalog(t, db, "postgres", []string{
		"CREATE TABLE f_items (id int PRIMARY KEY, stock int, number xid8)",
		"CREATE TABLE f_orders (id int PRIMARY KEY, item int REFERENCES f_items ON DELETE CASCADE ON UPDATE SET NULL)",
		"CREATE FUNCTION f_take(v int) RETURNS int LANGUAGE plpgsql AS 'BEGIN IF (SELECT stock FROM f_items WHERE id = v) > 0 THEN UPDATE f_items SET stock = 0; END IF; RETURN 1; END'",
		"CREATE FUNCTION f_take(v text) RETURNS int LANGUAGE sql BEGIN ATOMIC UPDATE f_items SET stock = 0; SELECT 1; END",
		"CREATE FUNCTION f_free(VARIADIC v int[]) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT count(*) = 0 FROM f_orders'",
		"CREATE FUNCTION f_count() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF (SELECT count(*) FROM f_orders) > 9 THEN RETURN NULL; END IF; RETURN NEW; END'",
		"CREATE TRIGGER f_counts BEFORE UPDATE OF item ON f_orders FOR EACH ROW EXECUTE FUNCTION f_count()",
		"CREATE TRIGGER f_never BEFORE DELETE ON f_orders FOR EACH ROW EXECUTE FUNCTION f_count()",
		"ALTER TABLE f_orders DISABLE TRIGGER f_never",
		"CREATE TABLE f_checked (id int CHECK (f_free(id)))",
		"CREATE DOMAIN f_domain AS int CHECK (f_free(VALUE))",
		"CREATE TABLE f_domains (id f_domain)",
		"CREATE TABLE f_ruled (id int)",
		"CREATE RULE f_rule AS ON INSERT TO f_ruled DO INSTEAD (INSERT INTO f_orders SELECT count(*) FROM f_orders; UPDATE f_items SET stock = 0)",
		"CREATE VIEW f_view AS SELECT id, stock FROM f_items",
		"CREATE VIEW f_told AS SELECT id FROM f_items",
		"CREATE TRIGGER f_instead INSTEAD OF INSERT ON f_told FOR EACH ROW EXECUTE FUNCTION f_count()",
		"CREATE PROCEDURE f_commits() LANGUAGE plpgsql AS 'BEGIN UPDATE f_items SET stock = 0; COMMIT; DELETE FROM f_ruled; END'",
	}, map[string]string{
		"SELECT f_take(1)":                  "[f_items] [f_items] false 1 false [function f_take]",
		"SELECT f_take()":                   "[] [] false 0 false []",
		"SELECT f_free(1, 2, 3)":            "[f_orders] [] false 1 false [function f_free]",
		"UPDATE f_orders SET id = 1":        "[] [f_orders] false 0 false []",
		"UPDATE f_orders SET item = 1":      "[f_orders] [f_orders] false 1 false [trigger f_counts]",
		"DELETE FROM f_orders WHERE id = 1": "[] [f_orders] false 0 false []",
		"DELETE FROM f_items":               "[f_orders] [f_items f_orders] false 2 false [trigger f_counts]",
		"UPDATE f_items SET stock = 1":      "[] [f_items] false 0 false []",
		"INSERT INTO f_checked VALUES (1)":  "[f_orders] [f_checked] false 1 false [function f_free]",
		"INSERT INTO f_domains VALUES (1)":  "[f_orders] [f_domains] false 1 false [function f_free]",
		"INSERT INTO f_ruled VALUES (1)":    "[f_orders] [f_items f_orders f_ruled] false 1 false [rule f_rule]",
		"UPDATE f_view SET stock = 1":       "[] [f_items] false 0 false []",
		"INSERT INTO f_told VALUES (1)":     "[f_orders] [] false 1 false [trigger f_instead]",
		"CALL f_commits()":                  "[f_items f_ruled] [f_items f_ruled] false 0 true [procedure f_commits]",
	})
	c, err := serverstate.ReadCatalog(t.Context(), db, "postgres")
	if err != nil || !c.Transactions["number"] || len(c.Transactions) != 1 {
		t.Errorf("%v: %v", err, c.Transactions)
	}
}
