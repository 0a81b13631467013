package explore_test

import (
	"database/sql"
	"reflect"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// checkTables runs statements, and compares what is known about the tables whose names begin with "f_".
func checkTables(t *testing.T, db *sql.DB, protocol string, statements []string, want serverstate.Tables) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	all, err := serverstate.ReadTables(t.Context(), db, protocol)
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range want {
		if !reflect.DeepEqual(all[name], one) {
			t.Errorf("%s is %+v, want %+v", name, all[name], one)
		}
	}
	if all["product"] == nil || all["tables"] != nil || all["pg_class"] != nil {
		t.Errorf("product is %+v; tables of the server: %+v, %+v", all["product"], all["tables"], all["pg_class"])
	}
}

// commonTables are the statements for both databases.
var commonTables = []string{
	"CREATE TABLE f_parent (id int PRIMARY KEY, a int)",
	"CREATE TABLE f_child (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES f_parent (id) ON DELETE CASCADE)",
	"CREATE TABLE f_strict (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES f_parent (id) ON UPDATE SET NULL)",
	"CREATE TABLE F_Logged (id int)",
	"CREATE VIEW f_view AS SELECT id FROM f_parent",
}

// TestTablesMySQL: ReadTables finds all by which a statement touches a table that it does not name.
func TestTablesMySQL(t *testing.T) {
	db, err := enginetest.Local(t).DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	checkTables(t, db, "mysql", append(commonTables, "CREATE TRIGGER f_trigger AFTER UPDATE ON F_Logged FOR EACH ROW SET @a = 1"), serverstate.Tables{
		"f_parent": {Deletes: []string{"f_child"}, Updates: []string{"f_strict"}},
		"f_child":  {Reads: []string{"f_parent"}},
		"f_strict": {Reads: []string{"f_parent"}},
		"f_logged": {Fires: true},
		"f_view":   {View: true, Opaque: true},
	})
}

// TestTablesPostgres is TestTablesMySQL for PostgreSQL.
func TestTablesPostgres(t *testing.T) {
	db, err := enginetest.Postgres(t).Admin.DB()
	if err != nil {
		t.Fatal(err)
	}
	checkTables(t, db, "postgres", append(commonTables,
		"CREATE FUNCTION f_one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"CREATE FUNCTION f_fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
		"CREATE TRIGGER f_trigger AFTER UPDATE ON f_logged FOR EACH ROW EXECUTE FUNCTION f_fires()",
		"CREATE TABLE f_default (id int DEFAULT f_one(), at timestamptz DEFAULT now())",
		"CREATE TABLE f_check (id int CHECK (id > f_one()))",
		"CREATE TABLE f_rule (id int)",
		"CREATE RULE f_rule AS ON INSERT TO f_rule DO ALSO UPDATE f_parent SET a = 1",
		"CREATE TABLE f_policy (id int)",
		"ALTER TABLE f_policy ENABLE ROW LEVEL SECURITY",
		"CREATE TABLE f_whole (id int) PARTITION BY RANGE (id)",
		"CREATE TABLE f_part PARTITION OF f_whole FOR VALUES FROM (0) TO (9)",
		"CREATE MATERIALIZED VIEW f_kept AS SELECT id FROM f_parent",
	), serverstate.Tables{
		"f_parent":  {Deletes: []string{"f_child"}, Updates: []string{"f_strict"}},
		"f_child":   {Reads: []string{"f_parent"}},
		"f_strict":  {Reads: []string{"f_parent"}},
		"f_logged":  {Fires: true},
		"f_view":    {View: true, Opaque: true, Fires: true}, // a view is a rule
		"f_default": {Fires: true},
		"f_check":   {Fires: true},
		"f_rule":    {Fires: true},
		"f_policy":  {Opaque: true},
		"f_whole":   {Parts: []string{"f_part"}},
		"f_part":    {Parts: []string{"f_whole"}},
		"f_kept":    {View: true, Opaque: true, Fires: true}, // a view is a rule
	})
}
