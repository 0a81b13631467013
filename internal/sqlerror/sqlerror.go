// Package sqlerror says what an error of the database means to a buyer, for
// every driver that the shop speaks. It is the one place that knows the
// drivers' error codes.
package sqlerror

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	sqlite "github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"
	sqlite3 "modernc.org/sqlite/lib"
)

// A Kind is what an error of the database means.
type Kind int

const (
	Other     Kind = iota // a statement that the server refused, or a bug
	Contended             // deadlock victim, lock wait timed out, database busy: rolled back, may be tried again
	Duplicate             // a unique index refused the row
	Down                  // the server could not be reached, or the connection broke
)

// KindOf classifies err. The numbers are those of
// https://mariadb.com/kb/en/mariadb-error-code-reference/ and
// https://www.sqlite.org/rescode.html.
func KindOf(err error) Kind {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		case 1205, 1213, 1020: // ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK, ER_CHECKREAD (innodb_snapshot_isolation)
			return Contended
		case 1062: // ER_DUP_ENTRY
			return Duplicate
		case 1040, 1203, 1226, // too many connections: ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
			1053, 1927, // ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED
			1290, 1836: // read-only, after a failover: ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE
			return Down
		}
		return Other
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff { // the low byte is the primary code
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return Contended
		case sqlite3.SQLITE_CONSTRAINT:
			if lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
				return Duplicate
			}
		case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY:
			return Down
		}
		return Other
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Other // a deadline is a net.Error too, but says nothing about the server
	}
	var network net.Error
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &network) {
		return Down
	}
	return Other
}

// Definite reports whether the server itself answered with err, so that a
// COMMIT which returned it did not take place. Any other error of a COMMIT
// leaves its fate unknown: the connection may have broken after the server
// had committed and before it could say so.
func Definite(err error) bool {
	var my *mysql.MySQLError
	var lite *sqlite.Error
	return errors.As(err, &my) || errors.As(err, &lite)
}
