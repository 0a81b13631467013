// Package backend asks the user's servers for facts that the gates cannot see, over separate connections. It finds
// out which command waits for another connection, which locks a connection holds, and whether a closed connection has
// ended. It also reads the triggers, functions and procedures that a database runs inside statements.
package backend

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
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/mysql"
	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/explore/wire/redis"
	"github.com/oversell/oversell/internal/load/pulse"
)

// A Backend is one of the user's servers, queried over a connection of its own.
type Backend interface {
	// Adopt records that a program has logged in. The server's number for the connection is id.
	Adopt(id int64)
	// Waiting returns the connections whose command waits for another connection. The caller sets `named` to true if one
	// of the commands asks for a named lock.
	Waiting(ctx context.Context, named bool) (map[int64]bool, error)
	// Granted reports whether command o, which asks for a named lock, no longer waits: it has the lock, or the lock is
	// free.
	Granted(ctx context.Context, o *gates.Op) (bool, error)
	// Gone reports whether the server has ended a connection that its program closed, and rolled back its transaction.
	Gone(ctx context.Context, id int64) (bool, error)
	// End waits until the connection has ended and its transaction is rolled back.
	End(ctx context.Context, id int64) error
	// Interrupt ends the wait of a connection's command, as a time-out does.
	Interrupt(ctx context.Context, id int64) error
	// Answered is called with the answer to a command. If Interrupt ended the command's wait, Answered replaces the answer
	// by the one that the server gives after a time-out or a deadlock.
	Answered(ctx context.Context, o *gates.Op) error
	// Held describes the locks and the transaction of each connection, by the server's number for the connection.
	Held(ctx context.Context) (map[int64][]string, error)
	// After is called when a command has changed something, before the explorer delivers its answer.
	After(ctx context.Context) error
}

// A Protocol is a wire protocol, with the function that makes the backend for its server. Protocols lists all.
type Protocol struct {
	wire.Protocol
	open func(*app.Servers) Backend
}

// Protocols returns all protocols. For a database, the parameter `code` provides the triggers and functions.
func Protocols(code Catalogs) []Protocol {
	return []Protocol{
		{mysql.Protocol(code["mysql"].Load), sqlBackend("mysql", dialect.MySQL)},
		{postgres.Protocol(code["postgres"].Load), sqlBackend("postgres", dialect.Postgres)},
		{redis.Protocol(), func(s *app.Servers) Backend { return redisBackend{s.Redis()} }},
	}
}

// Backends are the backends of the servers that an exploration uses, by protocol.
type Backends map[string]Backend

// Open returns the backends of the servers that have an address.
func Open(servers *app.Servers, code Catalogs) Backends {
	all := Backends{}
	for _, p := range Protocols(code) {
		if servers.Addresses()[p.Name] != "" {
			all[p.Name] = p.open(servers)
		}
	}
	return all
}

// Of returns the backend that a connection leads to.
func (all Backends) Of(c *wire.Conn) Backend { return all[c.Protocol] }

// Cut ends connections of the programs and opens the gates, so that nothing waits there. It returns when the servers
// have rolled back the transactions of these connections.
func (all Backends) Cut(ctx context.Context, g *gates.Gates, conns []*wire.Conn) error {
	for _, c := range conns {
		c.Cut()
	}
	g.Open()
	return all.End(ctx, conns)
}

// End returns when the servers have ended all these connections, which were cut before.
func (all Backends) End(ctx context.Context, conns []*wire.Conn) error {
	for _, c := range conns {
		if err := all.Of(c).End(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// OpenGates opens the gates. It also ends the waits in servers that would never end, because the gates have removed
// their time-out.
func (all Backends) OpenGates(ctx context.Context, g *gates.Gates) error {
	for _, o := range g.Open() {
		if err := all.Of(o.Conn()).Interrupt(ctx, o.Conn().ID); err != nil {
			return err
		}
	}
	return nil
}

// sqlBackend queries a database. It uses package serverstate, like the explorer of the catalogue's strategies.
func sqlBackend(protocol, name string) func(*app.Servers) Backend {
	return func(s *app.Servers) Backend {
		return sqlServer{serverstate.For(name, s.SQL(protocol)).Connections, map[string]bool{}}
	}
}

type sqlServer struct {
	serverstate.Connections
	names map[string]bool // the named locks that the programs asked for
}

// A connection is a serverstate.Conn of which only the server's number is known.
type connection int64

func (c connection) ID() int64    { return int64(c) }
func (c connection) Abandon()     {}
func (c connection) Close() error { return nil }

// Granted asks only MySQL. PostgreSQL needs no question, since Waiting reports its waits for advisory locks.
func (s sqlServer) Granted(ctx context.Context, o *gates.Op) (bool, error) {
	locks, ok := s.Connections.(interface {
		Holder(ctx context.Context, name string) (id int64, err error)
	})
	if !ok {
		return false, nil
	}
	name := lockName(o)
	if name == "" {
		return false, naming.Void("the name of a lock in GET_LOCK is computed, so its holder is unknown", "%s", o.Of())
	}
	holder, err := locks.Holder(ctx, name)
	return holder == 0 || holder == o.Conn().ID, err
}

// namedLock matches a GET_LOCK with a literal name.
var namedLock = regexp.MustCompile(`(?i)\bGET_LOCK\s*\(\s*['"]?((?:[^'",\\(]|'')+)['"]?\s*,`)

// lockName returns the name of the lock that a command asks for; "" if the name is computed.
func lockName(o *gates.Op) string {
	literal := namedLock.FindStringSubmatch(o.Text)
	if literal == nil {
		return ""
	}
	return strings.ReplaceAll(literal[1], "''", "'")
}

func (s sqlServer) Held(ctx context.Context) (map[int64][]string, error) {
	return s.Connections.Held(ctx, slices.Sorted(maps.Keys(s.names)))
}

func (s sqlServer) Gone(ctx context.Context, id int64) (bool, error) {
	return s.Connections.Gone(ctx, connection(id))
}

func (s sqlServer) End(ctx context.Context, id int64) error {
	return s.Connections.End(ctx, connection(id))
}

func (s sqlServer) Interrupt(ctx context.Context, id int64) error {
	return s.Connections.Interrupt(ctx, connection(id))
}

// Answered finds out why a statement was interrupted: by a time-out or, on PostgreSQL, because the explorer itself
// ended a deadlock, see package serverstate.
func (s sqlServer) Answered(ctx context.Context, o *gates.Op) error {
	if name := lockName(o); o.Named && name != "" {
		s.names[name] = true
	}
	var asked *pgconn.PgError
	_, err := s.Answer(ctx, serverstate.Statement{Conn: connection(o.Conn().ID), NamedLock: o.Named, TimedOut: o.Interrupted},
		nil, &pgconn.PgError{Code: "57014"})
	if errors.As(err, &asked) && asked.Code == "40P01" {
		o.Deadlocked()
	} else if o.Interrupted {
		o.Command.TimedOut()
	} else if o.Named && o.Limit > 0 && o.Answer.Failed && !strings.HasPrefix(o.Answer.Text, "error ") {
		return naming.Void("GET_LOCK waited by the clock until its time-out", "%q", o.Text)
	}
	return nil
}

func (sqlServer) After(context.Context) error { return nil }

type redisBackend struct{ serverstate.Keyspace }

func (redisBackend) Adopt(int64) {}

func (s redisBackend) Waiting(ctx context.Context, _ bool) (map[int64]bool, error) {
	return s.Blocked(ctx)
}

func (redisBackend) Granted(context.Context, *gates.Op) (bool, error) { return false, nil }

// End waits until the server has noticed that the connection was closed. The server notices it when it is idle, and
// then drops the connection's blocked command.
func (s redisBackend) End(ctx context.Context, id int64) error {
	limit, cancel := pulse.WithTimeout(ctx, schedule.HangTimeout)
	defer cancel()
	for ; ; time.Sleep(50 * time.Microsecond) { // without a sleep, a server on the same processor may never run
		blocked, err := s.Blocked(ctx)
		if err != nil || !blocked[id] {
			return err
		}
		if limit.Err() != nil {
			return fmt.Errorf("%w: Redis does not end a connection", schedule.ErrHarness)
		}
	}
}

// Held returns nothing, because in Redis no key belongs to a connection.
func (redisBackend) Held(context.Context) (map[int64][]string, error) { return nil, nil }

func (redisBackend) Answered(context.Context, *gates.Op) error { return nil }

// After extends every lease, so that only an event of the schedule ends one.
func (s redisBackend) After(ctx context.Context) error { return s.Stretch(ctx) }
