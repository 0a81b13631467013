package explore

import (
	"context"
	"database/sql/driver"
	"errors"

	sqlite "github.com/glebarez/go-sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteDatabase is opened without a busy time-out: a statement that would wait
// is refused, and stands at the gate until another transaction has ended. So
// nobody waits inside.
type sqliteDatabase struct{}

func (sqliteDatabase) prepare(context.Context, bool) error                   { return nil }
func (sqliteDatabase) connected(context.Context, driver.Conn) (int64, error) { return 0, nil }
func (sqliteDatabase) end(_ context.Context, c *sqlConn) error               { return c.Close() }
func (sqliteDatabase) interrupt(context.Context, *sqlConn) error             { return nil }
func (sqliteDatabase) blocks() bool                                          { return false }

func (sqliteDatabase) waiting(context.Context, []*op) (map[int64]bool, error) {
	return nil, nil
}

// answer turns a refusal that the busy time-out would have waited with into
// wouldBlock. SQLite does not wait for a lock where the transaction has read
// already (sqlite3BtreeBeginTrans asks the busy handler only when inTransaction
// is TRANS_NONE), nor where its snapshot is stale: both are the strategy's to
// see.
func (sqliteDatabase) answer(_ context.Context, o *op, got *rows, err error) (*rows, error) {
	var lite *sqlite.Error
	if errors.As(err, &lite) && lite.Code() == sqlite3.SQLITE_BUSY && !(o.conn.inTx && o.conn.touched) {
		return nil, wouldBlock{err}
	}
	return got, err
}
