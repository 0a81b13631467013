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

// errPooler reports a connection pooler in front of a database. A pooler tells its clients numbers of its
// own, and sends their commands on its own connections. To find out what a connection waits for, the
// explorer needs the connection's number in the database.
var errPooler = errors.New("this is a connection pooler, which hides the connection that sends a command: give the database's own address in this file and to the program")

// unpooledPostgres returns errPooler for PgBouncer and similar poolers. Its connection sends no
// startup parameters, because a pooler refuses most of them.
func unpooledPostgres(ctx context.Context, c *pgx.ConnConfig) error {
	c = c.Copy()
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // some poolers support no prepared statements
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

// unpooledMySQL returns errPooler for ProxySQL and similar poolers.
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
	// ProxySQL itself answers CONNECTION_ID() and @@version_comment, but forwards CONNECTION_ID() + 0.
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
	return numbered(thread, uint32(id)) // the greeting has only the low 32 bits
}

// numbered returns errPooler if the greeting and the database give a connection different numbers.
func numbered(greeted, asked uint32) error {
	if greeted == asked {
		return nil
	}
	return fmt.Errorf("%w (its number of the connection is %d, the database's is %d)", errPooler, greeted, asked)
}

// A greeting is a connection to MySQL that keeps the first bytes from the server.
type greeting struct {
	net.Conn
	first []byte
}

// mostGreeting is the number of bytes to keep, more than the length of any greeting.
const mostGreeting = 512

// Read implements net.Conn.
func (g *greeting) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if len(g.first) < mostGreeting {
		g.first = append(g.first, p[:n]...)
	}
	return n, err
}

// thread returns the connection's number from the greeting (Protocol::HandshakeV10). The number follows
// the packet header, the protocol number and the version.
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
