package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"

	sqlitedriver "github.com/glebarez/go-sqlite"
	"github.com/glebarez/sqlite"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// OpenWrapped opens one more pool on the engine's database, whose connections
// are made through wrap. It is closed with the engine.
//
// On SQLite its connections do not wait for a lock: they get SQLITE_BUSY, and
// wrap decides when to try again. Nor do they wait for the disk.
func (e *Engine) OpenWrapped(wrap func(driver.Connector) driver.Connector, conns int) (*gorm.DB, error) {
	pool := sql.OpenDB(wrap(e.connector))
	if e.DB.Name() == "sqlite" {
		return e.open(&sqlite.Dialector{Conn: pool}, conns)
	}
	return e.open(mysql.New(mysql.Config{Conn: pool, SkipInitializeWithVersion: true}), conns)
}

// sqliteConnector makes connections to one file.
type sqliteConnector struct{ dsn string }

func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) {
	return (&sqlitedriver.Driver{}).Open(c.dsn)
}

func (c sqliteConnector) Driver() driver.Driver { return &sqlitedriver.Driver{} }
