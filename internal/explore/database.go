package explore

import (
	"context"
	"database/sql/driver"
)

// A database is what the explorer must know of one: who waits in it, how a
// client's end and the end of a wait look from inside. What is not here is the
// same in all of them. One for Postgres would ask pg_blocking_pids, and end by
// pg_terminate_backend and pg_cancel_backend.
//
// It is used from the scheduler's goroutine, but for connected and answer.
type database interface {
	// prepare is called once; private: nobody else's data is in it.
	prepare(ctx context.Context, private bool) error

	// connected prepares a new connection, whose waits are not to run out by
	// themselves, and names it; 0 where waiting, end and interrupt need no name.
	connected(ctx context.Context, conn driver.Conn) (id int64, err error)

	// blocks: a statement may wait inside. Where none does, a connection must not
	// be ended while one runs.
	blocks() bool

	// waiting are the connections whose statement waits for a lock. flying are
	// the statements on their way.
	waiting(ctx context.Context, flying []*op) (map[int64]bool, error)

	// end ends a connection as the end of its process would, and returns when
	// what it had open is rolled back.
	end(ctx context.Context, c *sqlConn) error

	// interrupt ends the wait of the connection's statement, as its lock-wait
	// time-out would.
	interrupt(ctx context.Context, c *sqlConn) error

	// answer turns what a statement has ended with into what its strategy gets:
	// the rows of a query, or the error, which is wouldBlock where it is to stand
	// at the gate again.
	answer(ctx context.Context, o *op, got *rows, err error) (*rows, error)
}

// wouldBlock: the database has refused a command that it would else have waited
// with.
type wouldBlock struct{ error }

func (e wouldBlock) Unwrap() error { return e.error }
