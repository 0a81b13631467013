package explore_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

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
