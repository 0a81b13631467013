package app

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// A Notification is a NOTIFY of PostgreSQL.
type Notification struct{ Channel, Payload string }

// A Listener receives notifications on the explorer's own connection to PostgreSQL.
type Listener struct {
	db       *sql.DB
	received []Notification
}

func newListener(c *pgx.ConnConfig) *Listener {
	l := &Listener{}
	c = c.Copy()
	c.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		l.received = append(l.received, Notification{n.Channel, n.Payload})
	}
	l.db = stdlib.OpenDB(*c)
	return l
}

// Listen makes Notified return the notifications of a channel from now on.
func (l *Listener) Listen(ctx context.Context, channel string) error {
	return ask(ctx, func(ctx context.Context) error {
		_, err := l.db.ExecContext(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize())
		return err
	})
}

// Notified returns the notifications since the last call, including those of the explorer's own
// statements. It misses no notification of an answered statement. PostgreSQL signals every listener
// before the answer, and the query in Notified makes the server deliver the notifications.
func (l *Listener) Notified(ctx context.Context) ([]Notification, error) {
	err := ask(ctx, func(ctx context.Context) error {
		_, err := l.db.ExecContext(ctx, "SELECT 1")
		return err
	})
	all := l.received
	l.received = nil
	return all, err
}
