// Package database has what differs between databases for the explorer: which
// connections wait, how to end a connection as the death of its process would, and
// how to end a wait.
//
// A database is one file and one line in For.
package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Database is used from the scheduler's goroutine, but for Connected and Answer.
type Database interface {
	// Prepare is called once; disposable: nobody else's data is in it.
	Prepare(ctx context.Context, disposable bool) error

	// Stated reports whether what a statement does follows from what is committed, from what
	// the transactions that are open have done and met, and from the ids that were used. It
	// does not where a transaction that has ended counts on: SERIALIZABLE in PostgreSQL; nor
	// where plain reads lock, unseen: SERIALIZABLE in MariaDB; nor in a cluster.
	Stated(ctx context.Context) (bool, error)

	// Recount is a statement that has the ids of records count from the same number again in
	// each run, so that the states of different runs compare; "" where that is too slow, see NextID.
	Recount() string

	// Cleared returns when nothing is left of rows that were deleted, where they could still
	// be locked. It is for servers that nobody else uses, and may take a tenth of a second.
	Cleared(ctx context.Context) error

	// NextID is the id that the next record gets, from FirstID on; 0 where Recount says it.
	NextID(ctx context.Context) (int64, error)

	// Milliseconds is the time of a record, purchase_time, in ms since 1970, as an expression.
	Milliseconds() string

	// Connected prepares a new connection, whose waits are not to run out by
	// themselves, and names it; 0 where waiting, end and interrupt need no name.
	Connected(ctx context.Context, conn driver.Conn) (id int64, err error)

	// Adopt is for a connection that was not opened here, whose waits do not run out by
	// themselves.
	Adopt(id int64)

	// Blocks: a statement may wait inside. Where none does, a connection must not
	// be ended while one runs.
	Blocks() bool

	// Waiting are the connections whose statement waits for a lock. named: a
	// statement on its way asks for a named lock, see NamedLock.
	Waiting(ctx context.Context, named bool) (map[int64]bool, error)

	// End ends a connection as the end of its process would, and returns when
	// what it had open is rolled back.
	End(ctx context.Context, c Conn) error

	// Gone reports whether a connection that was closed has gone, and what it had open is
	// rolled back.
	Gone(ctx context.Context, c Conn) (bool, error)

	// Interrupt ends the wait of the connection's statement, as its lock-wait
	// time-out would.
	Interrupt(ctx context.Context, c Conn) error

	// Answer turns what a statement has ended with into what its strategy gets:
	// the rows of a query, or the error, which is WouldBlock where it is to stand
	// at the gate again.
	Answer(ctx context.Context, s Statement, got *Rows, err error) (*Rows, error)
}

// FirstID is far from every other number that a strategy hears: ids that differ from run to
// run can be told by their size. It has fewer digits than a time in ms.
const FirstID = 10_000_000_000

// A Conn is a connection of a buyer.
type Conn interface {
	ID() int64    // as Connected named it
	Abandon()     // nobody may use it again
	Close() error // says goodbye to the server, unless it was abandoned
}

// A Statement is what was sent.
type Statement struct {
	Conn      Conn
	NamedLock bool // it asks for a named lock
	TimedOut  bool // the schedule has ended its wait
	Read      bool // an open transaction has read or written before it
}

// WouldBlock: the database has refused a command that it would else have waited
// with.
type WouldBlock struct{ error }

// Unwrap returns the refusal.
func (e WouldBlock) Unwrap() error { return e.error }

// For returns the database of a dialect; admin is a connection beside those of the
// buyers.
func For(name string, admin *sql.DB) Database {
	return map[string]Database{
		dialect.MySQL:    &mysqlDatabase{admin: admin},
		dialect.Postgres: newPostgresDatabase(admin),
		dialect.SQLite:   sqliteDatabase{},
	}[name]
}

// untilGone returns when a connection has gone. It sleeps between two looks: bound to one
// processor, a server that answers without a pause kept a backend that was to end from
// running for 30 s (Linux 6.18).
func untilGone(ctx context.Context, d Database, c Conn) error {
	for deadline := time.Now().Add(schedule.HangTimeout); ; time.Sleep(50 * time.Microsecond) {
		if gone, err := d.Gone(ctx, c); err != nil || gone {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: the server does not end a connection", schedule.ErrHarness)
		}
	}
}

// gone asks for the count of a connection's lines.
func gone(ctx context.Context, admin *sql.DB, count string, c Conn) (bool, error) {
	var left int
	err := admin.QueryRowContext(ctx, count, c.ID()).Scan(&left)
	return err == nil && left == 0, err
}
