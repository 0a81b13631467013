package explore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/require"
)

// checkTables runs statements, and compares the result of ReadTables for tables "f_...".
func checkTables(t *testing.T, db *sql.DB, protocol string, statements []string, want serverstate.Tables) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	all, err := serverstate.ReadTables(t.Context(), db, protocol)
	require.NoError(t, err)
	for name, one := range want {
		if !reflect.DeepEqual(all[name], one) {
			t.Errorf("%s is %+v, want %+v", name, all[name], one)
		}
	}
	if all["product"] == nil || all["tables"] != nil || all["pg_class"] != nil {
		t.Errorf("product is %+v; tables of the server: %+v, %+v", all["product"], all["tables"], all["pg_class"])
	}
}

// commonTables are statements that both databases accept.
var commonTables = []string{
	"CREATE TABLE f_parent (id int PRIMARY KEY, a int)",
	"CREATE TABLE f_child (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES f_parent (id) ON DELETE CASCADE)",
	"CREATE TABLE f_strict (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES f_parent (id) ON UPDATE SET NULL)",
	"CREATE TABLE F_Logged (id int)",
	"CREATE VIEW f_view AS SELECT id FROM f_parent",
}

// TestTablesMySQL: ReadTables finds how a statement touches tables that it does not name.
func TestTablesMySQL(t *testing.T) {
	db, err := enginetest.Local(t).DB.DB()
	require.NoError(t, err)
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
	require.NoError(t, err)
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
		"f_view":    {View: true, Opaque: true, Fires: true}, // a view has a rule
		"f_default": {Fires: true},
		"f_check":   {Fires: true},
		"f_rule":    {Fires: true},
		"f_policy":  {Opaque: true},
		"f_whole":   {Parts: []string{"f_part"}},
		"f_part":    {Parts: []string{"f_whole"}},
		"f_kept":    {View: true, Opaque: true, Fires: true}, // a view has a rule
	})
}

// A holding is a list of statements, and the locks that the connection holds after them.
type holding struct {
	statements []string
	want       []string
}

// TestHeldMySQL: Held lists the locks and the transaction that statements leave on a connection. Without the plugin
// that lists metadata locks, it finds a named lock by its name.
func TestHeldMySQL(t *testing.T) {
	db, err := enginetest.Local(t).DB.DB()
	require.NoError(t, err)
	check := func(all ...holding) {
		t.Helper()
		checkHeld(t, db, serverstate.For(dialect.MySQL, db), "SELECT CONNECTION_ID()", all)
	}
	name := holding{[]string{"DO GET_LOCK('it''em', 1)"}, []string{"lock 'it'em'"}}
	check(name)
	if _, err := db.ExecContext(t.Context(), "INSTALL SONAME 'metadata_lock_info'"); err != nil {
		t.Skip(err)
	}
	check(
		holding{[]string{"SELECT 1", "UPDATE product SET amount = amount"}, nil},
		holding{[]string{"START TRANSACTION", "SELECT COUNT(*) FROM product", "COMMIT"}, nil},
		name,
		holding{[]string{"LOCK TABLES product READ"}, []string{"a lock on table product"}},
		holding{[]string{"START TRANSACTION", "SELECT COUNT(*) FROM product"}, []string{"an open transaction"}},
		holding{[]string{"START TRANSACTION", "SELECT id FROM product FOR UPDATE", "DO GET_LOCK('a', 1)"}, []string{"an open transaction", "row locks", "lock 'a'"}},
	)
}

// TestHeldPostgres is TestHeldMySQL for PostgreSQL.
func TestHeldPostgres(t *testing.T) {
	db, err := enginetest.Postgres(t).Admin.DB()
	require.NoError(t, err)
	checkHeld(t, db, serverstate.For(dialect.Postgres, db), "SELECT pg_backend_pid()", []holding{
		{[]string{"SELECT 1", "UPDATE product SET amount = amount"}, nil},
		{[]string{"BEGIN", "SELECT pg_advisory_xact_lock(1)", "COMMIT"}, nil},
		{[]string{"BEGIN"}, []string{"an open transaction"}},
		{[]string{"SELECT pg_advisory_lock(-5), pg_advisory_lock_shared(7, -8)"}, []string{"advisory lock -5", "advisory lock (7, -8)"}},
		{[]string{"BEGIN", "UPDATE product SET amount = amount", "INSERT INTO product (name, amount, stocked) VALUES ('held', 1, 1)"}, []string{"an open transaction", "row locks"}},
		{[]string{"BEGIN", "SELECT 1 / 0"}, []string{"a failed transaction"}},
	})
}

// checkHeld compares Held with the expected locks after each list of statements, each on a new connection.
func checkHeld(t *testing.T, db *sql.DB, database serverstate.Database, ask string, all []holding) {
	t.Helper()
	for _, h := range all {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		var id int64
		require.NoError(t, conn.QueryRowContext(t.Context(), ask).Scan(&id))
		for _, statement := range h.statements {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Log(err) // one of the statements is meant to fail
			}
		}
		held, err := database.Held(t.Context(), []string{"it'em"})
		slices.Sort(held[id])
		slices.Sort(h.want)
		if err != nil || !slices.Equal(held[id], h.want) {
			t.Errorf("after %q: %q, %v; want %q", h.statements, held[id], err, h.want)
		}
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // otherwise the pool keeps the connection
		_ = conn.Close()
	}
}

// TestTableWaits: Waiting returns a session that waits for LOCK TABLES until the lock is released, even if the session
// wakes late, and with and without the server's plugin.
func TestTableWaits(t *testing.T) {
	ctx := t.Context()
	db, err := enginetest.Local(t).DB.DB()
	require.NoError(t, err)
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	execute := func(on interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}, statement string,
	) {
		t.Helper()
		if _, err := on.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	holder, err := db.Conn(ctx)
	must(err)
	defer holder.Close()
	waiter, err := db.Conn(ctx)
	must(err)
	defer waiter.Close()
	var id int64
	must(waiter.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id))
	for _, told := range []bool{false, true} {
		if told {
			if _, err := db.ExecContext(ctx, "INSTALL SONAME 'metadata_lock_info'"); err != nil {
				t.Skip(err) // MySQL does not have the plugin
			}
		}
		d := serverstate.For(dialect.MySQL, db)
		d.Adopt(id)
		waits := func() bool {
			waiting, err := d.Waiting(ctx, false)
			must(err)
			return waiting[id]
		}
		for _, statement := range []string{"LOCK TABLES product WRITE", "LOCK TABLES product READ", "UPDATE product SET amount = 1"} {
			execute(holder, "LOCK TABLES product WRITE")
			done := make(chan error, 1)
			go func() {
				_, err := waiter.ExecContext(ctx, statement)
				done <- err
			}()
			for end := time.Now().Add(time.Minute); !waits(); {
				if time.Now().After(end) {
					t.Fatalf("told %t, %s: it waits, and is not seen", told, statement)
				}
			}
			if !waits() {
				t.Errorf("told %t, %s: it is seen once, and not again", told, statement)
			}
			execute(holder, "UNLOCK TABLES")
			if told && waits() {
				t.Errorf("%s: it has the lock, and is said to wait", statement)
			}
			must(<-done)
			if waits() {
				t.Errorf("told %t, %s: it is through, and is said to wait", told, statement)
			}
			execute(waiter, "UNLOCK TABLES")
		}
	}
}
