package explore_test

import (
	"database/sql"
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// A holding is a list of statements and the locks of a connection after them.
type holding struct {
	statements []string
	want       []string
}

// TestHeldMySQL: Held lists the locks and the transaction that statements left on a connection. Without
// the plugin that lists metadata locks, it finds a named lock by its name.
func TestHeldMySQL(t *testing.T) {
	db, err := enginetest.Local(t).DB.DB()
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	checkHeld(t, db, serverstate.For(dialect.Postgres, db), "SELECT pg_backend_pid()", []holding{
		{[]string{"SELECT 1", "UPDATE product SET amount = amount"}, nil},
		{[]string{"BEGIN", "SELECT pg_advisory_xact_lock(1)", "COMMIT"}, nil},
		{[]string{"BEGIN"}, []string{"an open transaction"}},
		{[]string{"SELECT pg_advisory_lock(-5), pg_advisory_lock_shared(7, -8)"}, []string{"advisory lock -5", "advisory lock (7, -8)"}},
		{[]string{"BEGIN", "UPDATE product SET amount = amount", "INSERT INTO product (name, amount, stocked) VALUES ('held', 1, 1)"}, []string{"an open transaction", "row locks"}},
		{[]string{"BEGIN", "SELECT 1 / 0"}, []string{"a failed transaction"}},
	})
}

// checkHeld compares Held with the expectation after each list of statements on a new connection.
func checkHeld(t *testing.T, db *sql.DB, database serverstate.Database, ask string, all []holding) {
	t.Helper()
	for _, h := range all {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var id int64
		if err := conn.QueryRowContext(t.Context(), ask).Scan(&id); err != nil {
			t.Fatal(err)
		}
		for _, statement := range h.statements {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Log(err) // one statement fails on purpose
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
