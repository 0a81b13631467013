package app

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A Notification is a NOTIFY of PostgreSQL.
type Notification struct{ Channel, Payload string }

// Listen makes Notified return the notifications of a channel from now on.
func (s *Servers) Listen(ctx context.Context, channel string) error {
	return ask(ctx, func(ctx context.Context) error {
		_, err := s.databases["postgres"].ExecContext(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize())
		return err
	})
}

// Notified returns the notifications that were sent since the last call, those of the explorer's own
// statements included. A notification is known as soon as the statement that sent it is answered:
// PostgreSQL signals every listener before that, and the explorer's query makes its own one look.
func (s *Servers) Notified(ctx context.Context) ([]Notification, error) {
	err := ask(ctx, func(ctx context.Context) error {
		_, err := s.databases["postgres"].ExecContext(ctx, "SELECT 1")
		return err
	})
	all := s.notified
	s.notified = nil
	return all, err
}
