// Package sqlconn names the interfaces that the connections of MySQL and PostgreSQL drivers
// implement. A wrapper of a connection must offer all of them.
package sqlconn

import "database/sql/driver"

// A Conn is a connection of these drivers. SQLite's driver lacks some methods.
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
