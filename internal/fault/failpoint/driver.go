package failpoint

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/oversell/oversell/internal/engine/sqlconn"
)

// Connector wraps the connector of the connection pool, so that failpoints can stop the buyers that use the pool.
func (s *Set) Connector(c driver.Connector) driver.Connector { return connector{c, s} }

type connector struct {
	driver.Connector
	set *Set
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c.set.connected(1)
	switch inner := inner.(type) {
	case sqlconn.Conn:
		return conn{inner, c.set, false}, nil
	case sqlconn.Plain:
		return conn{filled{inner}, c.set, true}, nil
	}
	return nil, errors.Join(errors.New("failpoints are for MySQL, MariaDB, PostgreSQL and SQLite"), inner.Close())
}

// filled implements the optional methods of a driver connection. They act like database/sql with a driver
// that does not have them.
type filled struct{ sqlconn.Plain }

func (filled) CheckNamedValue(*driver.NamedValue) error { return driver.ErrSkip }
func (filled) ResetSession(context.Context) error       { return nil }
func (filled) IsValid() bool                            { return true }

// conn can stop a buyer at two places: after it reads the product, and before it inserts its record.
type conn struct {
	sqlconn.Conn
	set *Set

	// lazy means that the driver reads a row only when database/sql asks for it, after the query has returned. Then
	// the buyer stops where its transaction begins. Its read of the product comes before that or after it.
	lazy bool
}

// Close implements driver.Conn.
func (c conn) Close() error {
	c.set.connected(-1)
	return c.Conn.Close()
}

func (c conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if records(query) { // INSERT ... RETURNING is a query, since it returns rows
		c.set.reached(ctx, Read)
	}
	rows, err := c.Conn.QueryContext(ctx, query, args)
	if err == nil && !c.lazy && strings.HasPrefix(query, "SELECT") && strings.Contains(unquoted(query), "FROM product") {
		c.set.reached(ctx, Read)
	}
	return rows, err
}

func (c conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if records(query) {
		c.set.reached(ctx, Read)
	}
	return c.Conn.ExecContext(ctx, query, args)
}

// records reports whether a statement inserts the record of a sale.
func records(query string) bool {
	return strings.HasPrefix(unquoted(query), "INSERT INTO purchase_history")
}

// unquoted removes the quotes that gorm puts around names, which differ between databases.
func unquoted(query string) string { return quotes.Replace(query) }

var quotes = strings.NewReplacer("`", "", `"`, "")

func (c conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.lazy {
		c.set.reached(ctx, Read)
	}
	inner, err := c.Conn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return tx{inner, ctx, c.set}, nil
}

// tx stops a buyer before its COMMIT. It keeps the context, although contexts should not be stored,
// since the driver's Commit has no context parameter.
type tx struct {
	driver.Tx
	ctx context.Context
	set *Set
}

func (t tx) Commit() error {
	t.set.reached(t.ctx, Commit)
	return t.Tx.Commit()
}
