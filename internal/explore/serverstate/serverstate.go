// Package serverstate asks the servers beside the connections of the buyers: it puts
// them into the state that every schedule begins with, reads what a schedule has made of
// it, sees which connections wait, and ends a connection or a wait. Both explorers use it,
// the one of our own strategies and the one of other programs.
//
// A server is one file: mysql.go, postgres.go, sqlite.go, redis.go. A database is also one
// line in For. stock.go has what is the same in all databases.
package serverstate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Database is one database as the explorer sees it.
type Database struct {
	Dialect effect.Dialect // in which its statements are read
	Connections
	Records
}

// Connections knows which connections wait, how to end one as the death of its process
// would, and how to end a wait. It is used from the scheduler's goroutine, except for
// Connected and Answer.
type Connections interface {
	// Connected prepares a new connection, so that its waits do not time out, and returns
	// its number; 0 where Waiting, End and Interrupt need none.
	Connected(ctx context.Context, conn driver.Conn) (id int64, err error)

	// Adopt takes over a connection that was not opened here and whose waits do not time out.
	Adopt(id int64)

	// Blocks reports whether a statement may wait inside the server. Where none does, a
	// connection must not be ended while one runs.
	Blocks() bool

	// Waiting returns the connections whose statement waits for a lock. named: a
	// statement on its way asks for a named lock, see NamedLock.
	Waiting(ctx context.Context, named bool) (map[int64]bool, error)

	// End ends a connection as the end of its process would, and returns when
	// what it had open is rolled back.
	End(ctx context.Context, c Conn) error

	// Gone reports whether a connection that was closed has gone, and what it had open is
	// rolled back.
	Gone(ctx context.Context, c Conn) (bool, error)

	// Held describes the locks and the transaction of each connection. It is exact for a connection
	// without a statement under way. names are the named locks that programs asked for: a server may
	// not list them.
	Held(ctx context.Context, names []string) (map[int64][]string, error)

	// Interrupt ends the wait of the connection's statement, as its lock-wait
	// time-out would.
	Interrupt(ctx context.Context, c Conn) error

	// Answer turns what a statement has ended with into what its strategy gets:
	// the rows of a query, or the error, which is WouldBlock where it is to stand
	// at the gate again.
	Answer(ctx context.Context, s Statement, got *Rows, err error) (*Rows, error)
}

// Records knows how the records of different runs are made to compare.
type Records interface {
	// Prepare is called once; disposable: the server has no other user's data.
	Prepare(ctx context.Context, disposable bool) error

	// Stated reports whether what a statement does follows from what is committed, from what
	// the transactions that are open have done and met, and from the ids that were used. It
	// does not where a transaction that has ended counts on: SERIALIZABLE in PostgreSQL; nor
	// where plain reads lock, unseen: SERIALIZABLE in MariaDB; nor in a cluster.
	Stated(ctx context.Context) (bool, error)

	// Recount returns a statement that has the ids of records count from the same number again
	// in each run, so that the states of different runs compare; "" where that is too slow, see
	// NextID.
	Recount() string

	// NextID returns the id that the next record gets, from FirstID on; 0 where Recount sets it.
	NextID(ctx context.Context) (int64, error)

	// Cleared returns when nothing is left of rows that were deleted, where they could still
	// be locked. It is for servers without other users, and may take a tenth of a second.
	Cleared(ctx context.Context) error

	// Milliseconds returns the time of a record, purchase_time, in ms since 1970, as an expression.
	Milliseconds() string
}

// FirstID is far from every other number that a strategy hears: ids that differ from run to
// run can be told by their size. It has fewer digits than a time in ms.
const FirstID = 10_000_000_000

// Held's words for a transaction and for the rows that it has locked or written.
const (
	heldTransaction = "an open transaction"
	heldRows        = "row locks"
)

// A Conn is a connection of a buyer.
type Conn interface {
	ID() int64    // as Connected numbered it
	Abandon()     // it may not be used again
	Close() error // says goodbye to the server, unless it was abandoned
}

// A Statement is what was sent.
type Statement struct {
	Conn      Conn
	NamedLock bool // it asks for a named lock
	TimedOut  bool // the schedule has ended its wait
	Read      bool // an open transaction has read or written before it
}

// WouldBlock is a database's refusal of a command that it would otherwise have let wait.
type WouldBlock struct{ error }

// Unwrap returns the refusal.
func (e WouldBlock) Unwrap() error { return e.error }

// For returns the database of a dialect; admin is a connection beside those of the
// buyers.
func For(name string, admin *sql.DB) Database {
	return map[string]Database{
		dialect.MySQL:    {effect.MySQL, &mysqlConnections{admin: admin, tables: metadataLocks{admin: admin}}, &mysqlRecords{admin: admin}},
		dialect.Postgres: {effect.Postgres, newPostgresConnections(admin), postgresRecords{admin}},
		dialect.SQLite:   {effect.MySQL, sqliteConnections{}, sqliteRecords{}},
	}[name]
}

// connectionID asks a new connection for its number.
func connectionID(ctx context.Context, conn driver.Conn, query string) (int64, error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, query, nil)
	if err != nil {
		return 0, err
	}
	kept, err := Keep(rows)
	if err != nil || len(kept.values) != 1 {
		return 0, fmt.Errorf("ask for the connection's id: %w", err)
	}
	var id sql.NullInt64
	err = id.Scan(kept.values[0][0])
	return id.Int64, err
}

// untilGone returns when a connection has gone. It sleeps between two looks: bound to one
// processor, a server that answers without a pause kept a backend that was to end from
// running for 30 s (Linux 6.18).
func untilGone(ctx context.Context, d Connections, c Conn) error {
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
