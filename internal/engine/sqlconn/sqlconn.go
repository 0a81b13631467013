// Package sqlconn names what the drivers of MySQL and PostgreSQL offer database/sql, for
// those who stand around a connection and must hide none of it.
package sqlconn

import "database/sql/driver"

// A Conn is a connection of theirs. SQLite's driver lacks a part of it.
type Conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}
