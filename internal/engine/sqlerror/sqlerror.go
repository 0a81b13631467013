// Package sqlerror classifies database errors by their meaning for a buyer. Only this package knows the error
// codes of the drivers. Each driver has one file, and one line in the function servers.
package sqlerror

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
)

// A Kind is the meaning of a database error.
type Kind int

const (
	Other     Kind = iota // a refused statement, or a bug
	Contended             // deadlock, lock wait time-out, busy database: rolled back, can be retried
	Duplicate             // a unique index refused the row
	Down                  // the server was unreachable, or the connection broke
)

// servers returns, for each kind of server, a function that classifies its errors. The result `said` is false
// if the error is not an answer of such a server.
func servers() []func(err error) (kind Kind, said bool) {
	return []func(error) (Kind, bool){mysqlKind, postgresKind, sqliteKind}
}

// KindOf classifies err.
func KindOf(err error) Kind {
	if kind, said := answer(err); said {
		return kind
	}
	if postgresBroken(err) { // checked first, since pgx reports a time-out while connecting as a context error
		return Down
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Other // a context error is also a net.Error, but says nothing about the server
	}
	var network net.Error
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || mysqlBroken(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return Down
	}
	return Other
}

// Definite reports whether the server itself answered with err, so that the failed COMMIT did not take
// place. After any other error the outcome of a COMMIT is unknown: the connection may have broken
// after the commit and before the answer.
func Definite(err error) bool {
	_, said := answer(err)
	return said && !postgresAmbiguous(err) && !mysqlAmbiguous(err)
}

func answer(err error) (kind Kind, said bool) {
	for _, of := range servers() {
		if kind, said = of(err); said {
			return kind, true
		}
	}
	return Other, false
}
