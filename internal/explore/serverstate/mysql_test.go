package serverstate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// afterwards is the state of a transaction after the wait of its second statement has ended.
type afterwards struct {
	open   bool // it still sees the write of its first statement
	locks  bool // it still has its lock
	first  int64
	second int64
}

// TestTimeoutIsReal: KILL QUERY, the time-out in a schedule, leaves a transaction in the same state
// as a real time-out. The gate recognizes both by their error numbers.
func TestTimeoutIsReal(t *testing.T) {
	db, err := enginetest.Local(t).DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	const realTimeout, interrupted = 1205, 1317
	seen := map[uint16]afterwards{}
	for _, number := range []uint16{realTimeout, interrupted} {
		state, err := waitForRow(t, db, number == realTimeout)
		var e *mysql.MySQLError
		if !errors.As(err, &e) || e.Number != number {
			t.Fatalf("the wait ended with %v, want error %d", err, number)
		}
		seen[number] = state
	}
	if want := (afterwards{true, true, 5, 10}); seen[realTimeout] != want || seen[interrupted] != want {
		t.Errorf("after a real time-out %+v, after KILL QUERY %+v; want %+v", seen[realTimeout], seen[interrupted], want)
	}
}

// waitForRow makes a transaction write one product and wait for another until the wait ends, by the
// real time-out of 1 s or by KILL QUERY. Then it commits.
func waitForRow(t *testing.T, db *sql.DB, real bool) (state afterwards, waited error) {
	t.Helper()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"first", "second"} {
		must(db.ExecContext(ctx, "REPLACE INTO product (name, amount, stocked) VALUES (?, 10, 10)", name))
	}
	holder, err := db.BeginTx(ctx, nil)
	must(nil, err)
	defer holder.Rollback()
	must(holder.ExecContext(ctx, "UPDATE product SET amount = 3 WHERE name = 'second'"))
	conn, err := db.Conn(ctx)
	must(nil, err)
	defer conn.Close()
	var id int64
	must(nil, conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id))
	if real {
		must(conn.ExecContext(ctx, "SET SESSION innodb_lock_wait_timeout = 1"))
	}
	waiter, err := conn.BeginTx(ctx, nil)
	must(nil, err)
	must(waiter.ExecContext(ctx, "UPDATE product SET amount = 5 WHERE name = 'first'"))
	done := make(chan error)
	go func() {
		_, err := waiter.ExecContext(ctx, "UPDATE product SET amount = 7 WHERE name = 'second'")
		done <- err
	}()
	if !real {
		for status := ""; !strings.Contains(status, "LOCK WAIT"); {
			must(nil, db.QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(new(any), new(any), &status))
		}
		must(db.ExecContext(ctx, fmt.Sprintf("KILL QUERY %d", id)))
	}
	waited = <-done
	var own int64
	must(nil, waiter.QueryRowContext(ctx, "SELECT amount FROM product WHERE name = 'first'").Scan(&own))
	state.open = own == 5
	var locked *mysql.MySQLError // 1205 on MariaDB, 3572 on MySQL
	state.locks = errors.As(db.QueryRowContext(ctx, "SELECT amount FROM product WHERE name = 'first' FOR UPDATE NOWAIT").Scan(&own), &locked)
	must(nil, holder.Rollback())
	must(nil, waiter.Commit())
	must(nil, db.QueryRowContext(ctx, "SELECT amount FROM product WHERE name = 'first'").Scan(&state.first))
	must(nil, db.QueryRowContext(ctx, "SELECT amount FROM product WHERE name = 'second'").Scan(&state.second))
	return state, waited
}

// TestTableWaits: a session that waits for LOCK TABLES is found. It is no longer found once the
// lock is released, however long it takes to wake, with and without the server's own information.
func TestTableWaits(t *testing.T) {
	ctx := t.Context()
	db, err := enginetest.Local(t).DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
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
				t.Skip(err) // MySQL's
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
