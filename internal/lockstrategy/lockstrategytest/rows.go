package lockstrategytest

import (
	"context"
	"database/sql"

	"github.com/oversell/oversell/internal/dialect"
)

// rows is how a test locks a product's row on a database, and sees who waits for it.
type rows struct {
	// lock are the statements that open a transaction and lock the row.
	lock func(product string) []string
	// waiting counts the statements that wait for a row; nil where the database does
	// not show them.
	waiting func(ctx context.Context, db *sql.DB) (int, error)
}

// rowsOf returns that of a dialect: one line each.
func rowsOf(name string) rows {
	return map[string]rows{
		dialect.MySQL:    {lockRow, mysqlWaits},
		dialect.Postgres: {lockRow, postgresWaits},
		dialect.SQLite:   {lockFile, nil},
	}[name]
}

func lockRow(product string) []string {
	return []string{"BEGIN", "SELECT id FROM product WHERE name = '" + product + "' FOR UPDATE"}
}

// postgresWaits counts those of this database alone.
func postgresWaits(ctx context.Context, db *sql.DB) (waits int, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`).Scan(&waits)
	return waits, err
}

// lockFile: SQLite has no row locks.
func lockFile(string) []string { return []string{"BEGIN IMMEDIATE"} }

// mysqlWaits reads the status variable because it is current: information_schema's
// innodb_trx is cached, see docs/design.md.
func mysqlWaits(ctx context.Context, db *sql.DB) (waits int, err error) {
	var name string
	row := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
	err = row.Scan(&name, &waits)
	return waits, err
}
