// Package serverstate controls the servers over its own connections, not the buyers'. It restores the initial state
// before every schedule, and reads the final state. It finds the connections that wait, and ends a connection or a
// wait. The explorer uses it for strategies and for programs under test.
//
// Each server has its own file: mysql.go, postgres.go, sqlite.go, redis.go. The function For lists the databases. The
// file stock.go contains the parts that all databases share.
package serverstate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Database is one database, as controlled by the explorer.
type Database struct {
	Dialect effect.Dialect // the SQL dialect of its statements
	Connections
	Records
}

// Connections finds the connections that wait. It can also end a wait, or a connection as if its process had died. Only
// the scheduler's goroutine may use it, except for Connected and Answer.
type Connections interface {
	// Connected prepares a new connection so that its waits do not time out, and returns its number. The number is 0
	// if Waiting, End and Interrupt do not need one.
	Connected(ctx context.Context, conn driver.Conn) (id int64, err error)

	// Adopt takes over a connection that a program has opened. The waits of the connection must not time out.
	Adopt(id int64)

	// Blocks reports whether a statement may wait inside the server. If it may not, a connection must not be ended
	// while a statement runs.
	Blocks() bool

	// Waiting returns the connections whose statement waits for a lock. The caller sets `named` to true if a statement
	// under way asks for a named lock.
	Waiting(ctx context.Context, named bool) (map[int64]bool, error)

	// End ends a connection as if its process had ended, and waits until its transaction is rolled back.
	End(ctx context.Context, c Conn) error

	// Gone reports whether a closed connection has ended and its transaction is rolled back.
	Gone(ctx context.Context, c Conn) (bool, error)

	// Held describes the locks and the transaction of each connection. It is exact for a connection without a statement
	// under way. The caller passes the names of the named locks that programs have asked for, since a server may be
	// unable to list them.
	Held(ctx context.Context, names []string) (map[int64][]string, error)

	// Interrupt ends the wait of the connection's statement, like the server's lock-wait time-out.
	Interrupt(ctx context.Context, c Conn) error

	// Answer converts the result of a statement into the result that its strategy gets: the rows of a query, or an
	// error. The error is WouldBlock if the statement must wait outside the server, and be sent again.
	Answer(ctx context.Context, s Statement, got *Rows, err error) (*Rows, error)
}

// Records makes the purchase records of different runs comparable.
type Records interface {
	// Prepare is called once. The parameter `disposable` is true if no other user has data on the server.
	Prepare(ctx context.Context, disposable bool) error

	// Stated reports whether three things determine the effect of a statement: the committed data, the statements and waits
	// of the open transactions, and the used ids. The answer is false if an ended transaction still matters
	// (SERIALIZABLE in PostgreSQL), if plain reads take locks (SERIALIZABLE in MariaDB), or in a cluster.
	Stated(ctx context.Context) (bool, error)

	// Recount returns a statement that resets the counter of record ids, so that states of different runs can be equal.
	// It returns "" if such a statement is too slow; then NextID is used.
	Recount() string

	// NextID returns the id of the next record, at least FirstID; 0 if Recount resets the counter.
	NextID(ctx context.Context) (int64, error)

	// Cleared waits until deleted rows can no longer be locked, for servers without other users. It may take 0.1 s.
	Cleared(ctx context.Context) error

	// Milliseconds returns an SQL expression for the column purchase_time of a record, in ms since 1970.
	Milliseconds() string
}

// FirstID is far above all other numbers that a strategy receives, so that ids are recognized by their size. It has fewer
// digits than a time in ms.
const FirstID = 10_000_000_000

// The descriptions that Held gives to a transaction, and to the rows that it has locked or written.
const (
	heldTransaction = "an open transaction"
	heldRows        = "row locks"
)

// A Conn is a connection of a buyer.
type Conn interface {
	ID() int64    // the number from Connected
	Abandon()     // makes the connection unusable
	Close() error // ends the session, unless the connection was abandoned
}

// A Statement is a statement that was sent to a server.
type Statement struct {
	Conn      Conn
	NamedLock bool // it asks for a named lock
	TimedOut  bool // the schedule has ended its wait
	Read      bool // its transaction is open, and has read or written before it
}

// WouldBlock is the error of a database that refuses a statement instead of letting it wait.
type WouldBlock struct{ error }

// Unwrap returns the database's error.
func (e WouldBlock) Unwrap() error { return e.error }

// For returns the database of a dialect. The parameter `admin` must not be a buyer's connection.
func For(name string, admin *sql.DB) Database {
	return map[string]Database{
		dialect.MySQL:    {effect.MySQL, &mysqlConnections{admin: admin, tables: metadataLocks{admin: admin}}, &mysqlRecords{admin: admin}},
		dialect.Postgres: {effect.Postgres, newPostgresConnections(admin), postgresRecords{admin}},
		dialect.SQLite:   {effect.MySQL, sqliteConnections{}, sqliteRecords{}},
	}[name]
}

func connectionID(ctx context.Context, conn driver.Conn, query string) (int64, error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, query, nil)
	if err != nil {
		return 0, err
	}
	kept, err := Keep(rows)
	if err == nil && len(kept.values) != 1 {
		err = fmt.Errorf("%d rows", len(kept.values))
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the connection's id: %w", err)
	}
	var id sql.NullInt64
	err = id.Scan(kept.values[0][0])
	return id.Int64, err
}

// endIfHungUp ends the connection if the driver has hung up on a waiting statement. The server alone would notice that,
// and roll back, at an unpredictable time. Other clients see the same in both cases.
func endIfHungUp(ctx context.Context, d Connections, s Statement, got *Rows, err error) (*Rows, error) {
	if err == nil || ctx.Err() == nil {
		return got, err
	}
	s.Conn.Abandon()
	return nil, errors.Join(err, d.End(context.WithoutCancel(ctx), s.Conn))
}

// untilGone waits until a connection has ended. It sleeps between queries: on one processor, queries without a pause
// kept a backend from ending for 30 s (Linux 6.18).
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

// gone runs a query that counts the connection in a list, and reports whether the count is 0.
func gone(ctx context.Context, admin *sql.DB, count string, c Conn) (bool, error) {
	var left int
	err := admin.QueryRowContext(ctx, count, c.ID()).Scan(&left)
	return err == nil && left == 0, err
}
