// Package sqlconn names the interfaces that the connections of the database drivers implement. A type that wraps a
// connection must implement all of them, since database/sql checks for each.
package sqlconn

import "database/sql/driver"

// A Conn is a connection to MySQL or PostgreSQL.
type Conn interface {
	Plain
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

// Plain is a connection to SQLite, whose driver lacks some methods of Conn.
type Plain interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
}
