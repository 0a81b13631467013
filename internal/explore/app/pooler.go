package app

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

// errPooler: a pooler numbers its clients by itself, and sends their commands on connections of
// its own. The explorer asks for waits by the number that the database has.
var errPooler = errors.New("a connection pooler stands there, and hides which connection a command comes by: give the database's own address, here and to the program")

// unpooledPostgres refuses PgBouncer and its like. The connection has no settings at its start,
// since a pooler refuses most of them.
func unpooledPostgres(ctx context.Context, c *pgx.ConnConfig) error {
	c = c.Copy()
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // a pooler may keep no prepared statement
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var pid uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	return numbered(conn.PgConn().PID(), pid)
}

// unpooledMySQL refuses ProxySQL and its like.
func unpooledMySQL(ctx context.Context, c *mysql.Config) error {
	c = c.Clone()
	var greeted *greeting
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		greeted = &greeting{Conn: conn}
		return greeted, err
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	var id uint64
	// ProxySQL answers CONNECTION_ID() alone by itself, and so it does the version's comment.
	if err := db.QueryRowContext(ctx, "SELECT CONNECTION_ID() + 0").Scan(&id); err != nil {
		return err
	}
	var comment string
	if err := db.QueryRowContext(ctx, "SELECT @@version_comment LIMIT 1").Scan(&comment); err == nil && strings.Contains(comment, "ProxySQL") {
		return fmt.Errorf("%w (%s)", errPooler, strings.Trim(comment, "()"))
	}
	thread, known := greeted.thread()
	if !known {
		return nil
	}
	return numbered(thread, uint32(id)) // the greeting has no more of it
}

// numbered compares the number of a connection as its other end says and as the database says.
func numbered(greeted, asked uint32) error {
	if greeted == asked {
		return nil
	}
	return fmt.Errorf("%w (it calls a connection %d that the database calls %d)", errPooler, greeted, asked)
}

// A greeting is a connection to MySQL that keeps what the server says first.
type greeting struct {
	net.Conn
	first []byte
}

// mostGreeting is longer than a greeting.
const mostGreeting = 512

// Read is net.Conn's.
func (g *greeting) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if len(g.first) < mostGreeting {
		g.first = append(g.first, p[:n]...)
	}
	return n, err
}

// thread is the connection's number in the greeting: behind a packet's head, the protocol's number
// and the version (Protocol::HandshakeV10).
func (g *greeting) thread() (id uint32, known bool) {
	const version = 5
	if len(g.first) <= version {
		return 0, false
	}
	end := bytes.IndexByte(g.first[version:], 0)
	if rest := g.first[version+max(end, 0):]; end >= 0 && len(rest) >= 5 {
		return binary.LittleEndian.Uint32(rest[1:]), true
	}
	return 0, false
}
