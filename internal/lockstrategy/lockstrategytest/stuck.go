package lockstrategytest

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// stuck keeps a product's row locked, so that whoever is inside the critical
// section stays there.
type stuck struct {
	release func() // may be called twice
	db      *sql.DB
	dialect string
}

// keepRowLocked locks the row from a connection of its own until release; on
// SQLite, which has no row locks, it takes the file's write lock.
func (w *world) keepRowLocked(t *testing.T, name string) *stuck {
	t.Helper()
	db, err := w.engine.DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &stuck{db: db, dialect: w.engine.DB.Name()}
	s.release = sync.OnceFunc(func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Errorf("unlock the row: %v", err)
		}
		_ = conn.Close()
	})
	t.Cleanup(s.release)
	statements := []string{"BEGIN IMMEDIATE"}
	if s.dialect == "mysql" {
		statements = []string{"BEGIN", "SELECT id FROM product WHERE name = '" + name + "' FOR UPDATE"}
	}
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return s
}

// waitForVictims returns when so many statements wait for the row. SQLite does
// not tell; what a test shows there holds wherever the buyer stands.
//
// The status variable is read because it is current: information_schema's
// innodb_trx is cached, see docs/design.md.
func (s *stuck) waitForVictims(t *testing.T, n int) {
	t.Helper()
	if s.dialect != "mysql" {
		return
	}
	for deadline := time.Now().Add(patience); ; {
		var name string
		var waits int
		row := s.db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
		if err := row.Scan(&name, &waits); err != nil {
			t.Fatal(err)
		}
		if waits >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait for the row, want %d", waits, n)
		}
	}
}

// receive fails the test when nothing comes.
func receive(t *testing.T, errs <-chan error, who string) error {
	t.Helper()
	select {
	case err := <-errs:
		return err
	case <-time.After(patience):
		t.Fatalf("%s did not come back within %s", who, patience)
		return nil
	}
}

// expect reads events until the wanted one comes.
func expect(t *testing.T, events <-chan lockstrategy.Event, kind lockstrategy.EventKind, purchaser string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e := <-events:
			if e.Kind == kind && e.Purchaser == purchaser {
				return
			}
		case <-deadline:
			t.Fatalf("%s: no event %q within %s", purchaser, kind, patience)
		}
	}
}

// cameIn tells whether buyer-3 was granted the lock before its Buy returned.
func cameIn(t *testing.T, events <-chan lockstrategy.Event, returned <-chan error) bool {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e := <-events:
			if e.Kind == lockstrategy.Acquired && e.Purchaser == "buyer-3" {
				return true
			}
		case err := <-returned:
			if !errors.Is(err, purchase.ErrBusy) {
				t.Errorf("the third buyer: %v, want ErrBusy", err)
			}
			return false
		case <-deadline:
			t.Fatalf("the third buyer: nothing within %s", patience)
		}
	}
}
