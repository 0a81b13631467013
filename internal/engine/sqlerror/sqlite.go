package sqlerror

import (
	"errors"

	sqlite "github.com/glebarez/go-sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteKind classifies an error of SQLite. The codes are listed at https://www.sqlite.org/rescode.html.
func sqliteKind(err error) (kind Kind, said bool) {
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return Other, false
	}
	switch lite.Code() & 0xff { // the low byte is the primary code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return Contended, true
	case sqlite3.SQLITE_CONSTRAINT:
		if lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
			return Duplicate, true
		}
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY:
		return Down, true
	}
	return Other, true
}
