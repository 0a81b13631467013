package serverstate

import (
	"context"
	"database/sql/driver"
	"errors"

	sqlite "github.com/glebarez/go-sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteConnections implements Connections for SQLite without a busy time-out. SQLite refuses a statement that would
// wait. The explorer sends the statement again after another transaction has ended, so none waits inside SQLite.
type sqliteConnections struct{}

func (sqliteConnections) Connected(context.Context, driver.Conn) (int64, error) { return 0, nil }
func (sqliteConnections) Adopt(int64)                                           {}
func (sqliteConnections) Blocks() bool                                          { return false }
func (sqliteConnections) Waiting(context.Context, bool) (map[int64]bool, error) { return nil, nil }
func (sqliteConnections) End(_ context.Context, c Conn) error                   { return c.Close() }
func (sqliteConnections) Gone(context.Context, Conn) (bool, error)              { return true, nil }
func (sqliteConnections) Interrupt(context.Context, Conn) error                 { return nil }

// Held returns no locks: only programs under test need it, and they cannot use SQLite.
func (sqliteConnections) Held(context.Context, []string) (map[int64][]string, error) { return nil, nil }

// Answer turns a refusal into WouldBlock if SQLite would have waited with a busy time-out. It would not wait if the
// transaction has already read (sqlite3BtreeBeginTrans calls the busy handler only when inTransaction is TRANS_NONE),
// or if the transaction's snapshot is stale. These two refusals go to the strategy.
func (sqliteConnections) Answer(_ context.Context, s Statement, got *Rows, err error) (*Rows, error) {
	var lite *sqlite.Error
	if errors.As(err, &lite) && lite.Code() == sqlite3.SQLITE_BUSY && !s.Read {
		return nil, WouldBlock{err}
	}
	return got, err
}

// sqliteRecords implements Records for SQLite, which numbers records with AUTOINCREMENT.
type sqliteRecords struct{}

func (sqliteRecords) Prepare(context.Context, bool) error   { return nil }
func (sqliteRecords) Stated(context.Context) (bool, error)  { return true, nil }
func (sqliteRecords) Cleared(context.Context) error         { return nil }
func (sqliteRecords) NextID(context.Context) (int64, error) { return 0, nil }

// Recount implements Records. AUTOINCREMENT continues from the highest existing id or, if it is higher, the number in
// sqlite_sequence.
func (sqliteRecords) Recount() string {
	return "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'purchase_history'"
}

func (sqliteRecords) Milliseconds() string {
	return "CAST(ROUND((julianday(purchase_time) - 2440587.5) * 86400000) AS INTEGER)"
}
