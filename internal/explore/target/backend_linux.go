package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/mysql"
	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/explore/wire/redis"
)

// A backend is one of the user's servers, queried over a connection of its own.
type backend interface {
	// joined records that a program has logged in with that id.
	joined(id int64)
	// waiting returns the connections whose command waits for another connection.
	waiting(ctx context.Context, named bool) (map[int64]bool, error)
	// granted reports whether the command, which asks for a named lock, no longer waits: it has the
	// lock, or the lock is free.
	granted(ctx context.Context, o *op) (bool, error)
	// gone reports whether the server has ended a connection that its program closed, and has rolled
	// back its transaction.
	gone(ctx context.Context, id int64) (bool, error)
	// end waits until the connection has ended and its transaction is rolled back.
	end(ctx context.Context, id int64) error
	// interrupt ends the wait of a connection's command, as its time-out would.
	interrupt(ctx context.Context, id int64) error
	// answered replaces the answer to an interrupted wait by the answer of the time-out, or of the
	// deadlock.
	answered(ctx context.Context, o *op) error
	// held describes the locks and the transaction of each connection, see
	// serverstate.Connections.Held.
	held(ctx context.Context) (map[int64][]string, error)
	// after is called before the answer to a command that has changed something is delivered.
	after(ctx context.Context) error
}

// A server is a protocol with its implementation. Each protocol is one line in protocols.
type server struct {
	wire.Protocol
	backend func(*app.Servers) backend
}

func protocols() []server {
	return []server{
		{mysql.Protocol(), sqlBackend("mysql", dialect.MySQL)},
		{postgres.Protocol(), sqlBackend("postgres", dialect.Postgres)},
		{redis.Protocol(), func(s *app.Servers) backend { return redisBackend{s.Redis()} }},
	}
}

// sqlBackend queries a database as the explorer of our own strategies does.
func sqlBackend(protocol, name string) func(*app.Servers) backend {
	return func(s *app.Servers) backend {
		return sqlServer{serverstate.For(name, s.SQL(protocol)).Connections, map[string]bool{}}
	}
}

type sqlServer struct {
	serverstate.Connections
	names map[string]bool // the named locks that the programs asked for
}

// A connection names a connection by the database's number for it.
type connection int64

func (c connection) ID() int64    { return int64(c) }
func (c connection) Abandon()     {}
func (c connection) Close() error { return nil }

func (s sqlServer) joined(id int64) { s.Adopt(id) }

func (s sqlServer) waiting(ctx context.Context, named bool) (map[int64]bool, error) {
	return s.Waiting(ctx, named)
}

// granted asks only MySQL, since PostgreSQL reports waits for advisory locks, too.
func (s sqlServer) granted(ctx context.Context, o *op) (bool, error) {
	locks, ok := s.Connections.(interface {
		Holder(ctx context.Context, name string) (id int64, err error)
	})
	if !ok {
		return false, nil
	}
	name := lockName(o)
	if name == "" {
		return false, voided("the name of a lock in GET_LOCK is computed, so its holder is unknown", "%s", o.of())
	}
	holder, err := locks.Holder(ctx, name)
	return holder == 0 || holder == o.Conn().ID, err
}

// namedLock finds the literal name of a lock.
var namedLock = regexp.MustCompile(`(?i)\bGET_LOCK\s*\(\s*['"]?((?:[^'",\\(]|'')+)['"]?\s*,`)

// lockName returns the name of the lock that a command asks for; "" if the name is computed.
func lockName(o *op) string {
	literal := namedLock.FindStringSubmatch(o.Text)
	if literal == nil {
		return ""
	}
	return strings.ReplaceAll(literal[1], "''", "'")
}

func (s sqlServer) held(ctx context.Context) (map[int64][]string, error) {
	return s.Held(ctx, slices.Sorted(maps.Keys(s.names)))
}

func (s sqlServer) gone(ctx context.Context, id int64) (bool, error) {
	return s.Gone(ctx, connection(id))
}

func (s sqlServer) end(ctx context.Context, id int64) error { return s.End(ctx, connection(id)) }

func (s sqlServer) interrupt(ctx context.Context, id int64) error {
	return s.Interrupt(ctx, connection(id))
}

// answered asks the database why a statement was interrupted. The explorer itself ends PostgreSQL's
// deadlocks, see package serverstate.
func (s sqlServer) answered(ctx context.Context, o *op) error {
	if name := lockName(o); o.Named && name != "" {
		s.names[name] = true
	}
	var asked *pgconn.PgError
	_, err := s.Answer(ctx, serverstate.Statement{Conn: connection(o.Conn().ID), NamedLock: o.Named, TimedOut: o.timedOut},
		nil, &pgconn.PgError{Code: "57014"})
	if errors.As(err, &asked) && asked.Code == "40P01" {
		o.Deadlocked()
	} else if o.timedOut {
		o.TimedOut()
	} else if o.Named && o.Limit > 0 && o.Answer.Failed && !strings.HasPrefix(o.Answer.Text, "error ") {
		return voided("GET_LOCK waited by the clock until its time-out", "%q", o.Text)
	}
	return nil
}

func (sqlServer) after(context.Context) error { return nil }

// redisBackend is a Redis server.
type redisBackend struct{ serverstate.Keyspace }

func (redisBackend) joined(int64) {}

func (s redisBackend) waiting(ctx context.Context, _ bool) (map[int64]bool, error) {
	return s.Blocked(ctx)
}

func (redisBackend) granted(context.Context, *op) (bool, error) { return false, nil }

func (s redisBackend) gone(ctx context.Context, id int64) (bool, error) { return s.Gone(ctx, id) }

// end waits until the server has seen that a connection was closed. The server looks when it is idle,
// and then drops the command that the client was blocked in.
func (s redisBackend) end(ctx context.Context, id int64) error {
	for deadline := time.Now().Add(schedule.HangTimeout); ; time.Sleep(50 * time.Microsecond) { // otherwise the server may never run on one processor
		blocked, err := s.Blocked(ctx)
		if err != nil || !blocked[id] {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: Redis does not end a connection", schedule.ErrHarness)
		}
	}
}

func (s redisBackend) interrupt(ctx context.Context, id int64) error { return s.Unblock(ctx, id) }

// held returns nothing: in Redis no key belongs to a connection.
func (redisBackend) held(context.Context) (map[int64][]string, error) { return nil, nil }

func (redisBackend) answered(context.Context, *op) error { return nil }

// after extends every lease, so that only an event ends one.
func (s redisBackend) after(ctx context.Context) error { return s.Stretch(ctx) }
