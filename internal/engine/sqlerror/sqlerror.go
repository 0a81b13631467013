// Package sqlerror says what an error of the database means to a buyer, for
// every driver that the shop speaks. It is the one place that knows the
// drivers' error codes: a driver is one file, a line in servers, and one more where its
// errors need it.
package sqlerror

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
)

// A Kind is what an error of the database means.
type Kind int

const (
	Other     Kind = iota // a statement that the server refused, or a bug
	Contended             // deadlock victim, lock wait timed out, database busy: rolled back, may be tried again
	Duplicate             // a unique index refused the row
	Down                  // the server could not be reached, or the connection broke
)

// servers say what an answer of their server means; said is false for an error that
// is not one.
func servers() []func(err error) (kind Kind, said bool) {
	return []func(error) (Kind, bool){mysqlKind, postgresKind, sqliteKind}
}

// KindOf classifies err.
func KindOf(err error) Kind {
	if kind, said := answer(err); said {
		return kind
	}
	if postgresBroken(err) { // its time-out to connect is a context's, too
		return Down
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Other // a deadline is a net.Error too, but says nothing about the server
	}
	var network net.Error
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || mysqlBroken(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return Down
	}
	return Other
}

// Definite reports whether the server itself answered with err, so that a
// COMMIT which returned it did not take place. Any other error of a COMMIT
// leaves its fate unknown: the connection may have broken after the server
// had committed and before it could say so.
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
