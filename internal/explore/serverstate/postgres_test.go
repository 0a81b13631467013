package serverstate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oversell/oversell/internal/engine/enginetest"
)

// TestClosed: in a cycle of waits, the session whose wait completed the cycle is the victim.
func TestClosed(t *testing.T) {
	for _, c := range []struct {
		name     string
		blockers map[int64][]int64
		known    map[int64]bool
		victim   int64
	}{
		{"nobody waits", nil, nil, 0},
		{"one waits", map[int64][]int64{1: {2}}, nil, 0},
		{"a line", map[int64][]int64{1: {2, 3}, 2: {3}}, map[int64]bool{2: true}, 0},
		{"two, the second is new", map[int64][]int64{1: {2}, 2: {1}}, map[int64]bool{1: true}, 2},
		{"two, the first is new", map[int64][]int64{1: {2}, 2: {1}}, map[int64]bool{2: true}, 1},
		{"three, and one beside them", map[int64][]int64{1: {2}, 2: {3}, 3: {1}, 4: {1}}, map[int64]bool{1: true, 2: true}, 3},
	} {
		d := &postgresConnections{known: c.known}
		if victim, found := d.closed(c.blockers); victim != c.victim || found != (c.victim != 0) {
			t.Errorf("%s: %d, %t; want %d", c.name, victim, found, c.victim)
		}
	}
}

// TestPostgresWaits: pg_cancel_backend stands for time-outs and deadlocks in a schedule. It leaves
// a transaction in the same state as the server's own: failed and without locks. The error numbers
// are those that Answer returns.
func TestPostgresWaits(t *testing.T) {
	db, err := enginetest.Postgres(t).Admin.DB()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO product (name, amount, stocked) VALUES ($1, 10, 10)", name); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, setting string
		deadlock      bool
		code          string
	}{
		{"lock_timeout", "SET LOCAL lock_timeout = '50ms'", false, errLockNotAvailable},
		{"a time-out of a schedule", "", false, errQueryCanceled},
		{"deadlock_timeout", "SET LOCAL deadlock_timeout = '50ms'", true, errDeadlockDetected},
		{"a deadlock of a schedule", "SET LOCAL deadlock_timeout = '1h'", true, errQueryCanceled},
	} {
		if err := waitForPostgresRow(t, db, c.setting, c.deadlock, c.code == errQueryCanceled); err != nil {
			var said *pgconn.PgError
			if !errors.As(err, &said) || said.Code != c.code {
				t.Errorf("%s: %v; want SQLSTATE %s", c.name, err, c.code)
			}
		}
	}
}

// waitForPostgresRow makes a transaction write one product and wait for another until the server or
// pg_cancel_backend ends the wait. It fails the test unless the transaction is then in the expected
// state.
func waitForPostgresRow(t *testing.T, db *sql.DB, setting string, deadlock, cancel bool) error {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	begin := func(statements ...string) (tx *sql.Tx, id int64) {
		t.Helper()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&id); err != nil {
			t.Fatal(err)
		}
		for _, s := range statements {
			if s == "" {
				continue
			}
			if _, err := tx.ExecContext(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		return tx, id
	}
	const write = "UPDATE product SET amount = amount - 1 WHERE name = '%s'"
	other, _ := begin("SET LOCAL deadlock_timeout = '1h'", fmt.Sprintf(write, "second"))
	defer other.Rollback()
	waiter, id := begin(setting, fmt.Sprintf(write, "first"))
	defer waiter.Rollback()
	d := newPostgresConnections(db)
	waits := func(n int) {
		t.Helper()
		for {
			blockers, err := d.blockers(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(blockers) == n {
				return
			}
		}
	}
	for _, tx := range []*sql.Tx{other, waiter} {
		var pid int64
		if err := tx.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		d.ours[pid] = true
	}
	through := make(chan error, 1)
	if deadlock {
		go func() {
			_, err := other.ExecContext(ctx, fmt.Sprintf(write, "first"))
			through <- err
		}()
		waits(1)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := waiter.ExecContext(ctx, fmt.Sprintf(write, "second"))
		waited <- err
	}()
	if cancel {
		waits(map[bool]int{false: 1, true: 2}[deadlock])
		if err := d.cancel(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	err := <-waited
	var said *pgconn.PgError
	if _, again := waiter.ExecContext(ctx, "SELECT 1"); !errors.As(again, &said) || said.Code != "25P02" { // in_failed_sql_transaction
		t.Errorf("after %v the transaction goes on: %v", err, again)
	}
	if deadlock { // a failed transaction has released its locks
		if err := <-through; err != nil {
			t.Errorf("the other one: %v", err)
		}
	}
	var locked int
	free := db.QueryRowContext(ctx, "SELECT 1 FROM product WHERE name = 'first' FOR UPDATE SKIP LOCKED").Scan(&locked)
	if (free == nil) == deadlock {
		t.Errorf("after %v the row that it has written: %v", err, free)
	}
	return err
}
