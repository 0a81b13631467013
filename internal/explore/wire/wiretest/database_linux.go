package wiretest

import (
	"database/sql"
	"testing"
)

// OpenDB opens a database with at most one connection, until the test ends.
func OpenDB(t testing.TB, driver, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs a statement. It works in a cleanup too, since it does not use the test's context.
func Exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%.100s: %v", statement, err)
	}
}

// One returns the one value of a query.
func One(t testing.TB, db *sql.DB, query string) (value string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}
