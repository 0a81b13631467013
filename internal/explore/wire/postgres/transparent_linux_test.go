package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestTransparentPostgres: with an open gate, a program and the server exchange the same bytes as
// without a gate, except those that the gate removes on purpose.
func TestTransparentPostgres(t *testing.T) {
	t.Parallel()
	server := localservertest.Postgres(t)
	setUp(t, server)
	for _, c := range []struct {
		name string
		url  string // settings that differ from the server's URL
		do   func(t *testing.T, ctx context.Context, url string, b *both)
	}{
		{"simple", "", withPgx(pgx.QueryExecModeSimpleProtocol, statements)},
		{"exec", "", withPgx(pgx.QueryExecModeExec, statements)},
		{"cached", "", withPgx(pgx.QueryExecModeCacheStatement, statements)},
		{"described", "", withPgx(pgx.QueryExecModeCacheDescribe, statements)},
		{"large", "", withPgx(pgx.QueryExecModeCacheStatement, large)},
		{"by hand", "", byHand},
		{"copy by hand", "", copyByHand},
		{"skipped", "", skipped},
		{"prefer TLS", "sslmode=prefer", withPgx(pgx.QueryExecModeExec, one)},
		{"SCRAM", "user=scram password=secret", withPgx(pgx.QueryExecModeExec, one)},
		{"cleartext", "user=plain password=secret", withPgx(pgx.QueryExecModeExec, one)},
		{"trust", "user=trusted", withPgx(pgx.QueryExecModeExec, one)},
		{"wrong password", "user=scram password=wrong", refused},
		{"cancel", "", cancels},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := through(t, server.Addr)
			c.do(t, soon(t), with(server.URL(), c.url), b)
			for _, one := range b.differences(t) {
				t.Error(one)
			}
		})
	}
}

// with returns a URL with changed settings. If a setting occurs twice, its last value counts.
func with(url, changes string) string {
	c, err := pgconn.ParseConfig(url)
	if err != nil {
		panic(err)
	}
	settings := map[string]string{"host": c.Host, "port": fmt.Sprint(c.Port), "user": c.User, "password": c.Password, "dbname": c.Database, "sslmode": "disable"}
	for _, one := range strings.Fields(changes) {
		name, value, _ := strings.Cut(one, "=")
		settings[name] = value
	}
	var all []string
	for name, value := range settings {
		all = append(all, name+"="+value)
	}
	return strings.Join(all, " ")
}

// setUp creates tables, and accounts with every login method.
func setUp(t *testing.T, server *localserver.Postgres) {
	t.Helper()
	ctx := soon(t)
	c := must(pgconn.Connect(ctx, server.URL()))(t)
	defer c.Close(ctx)
	for _, sql := range []string{
		"CREATE TABLE items (id SERIAL PRIMARY KEY, stock INT NOT NULL); INSERT INTO items (stock) VALUES (1), (5)",
		"CREATE TABLE copied (a INT, b TEXT)",
		"SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD 'secret'; CREATE ROLE plain LOGIN PASSWORD 'secret'; CREATE ROLE trusted LOGIN",
		`COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; sed -i "1i host all plain 127.0.0.1/32 password\nhost all trusted 127.0.0.1/32 trust" pg_hba.conf'`,
		"SELECT pg_reload_conf()",
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO scram, plain, trusted",
	} {
		if _, err := c.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(sql, err)
		}
	}
	for { // the postmaster may not have read pg_hba.conf yet
		c, err := pgconn.Connect(ctx, with(server.URL(), "user=trusted"))
		if err == nil {
			_ = c.Close(ctx)
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func withPgx(mode pgx.QueryExecMode, do func(t *testing.T, ctx context.Context, c *pgx.Conn)) func(*testing.T, context.Context, string, *both) {
	return func(t *testing.T, ctx context.Context, url string, b *both) {
		cc := must(pgx.ParseConfig(url))(t)
		cc.Config = *config(t, url, b.Program.Address)
		cc.DefaultQueryExecMode = mode
		c := must(pgx.ConnectConfig(ctx, cc))(t)
		do(t, ctx, c)
		_ = c.Close(ctx)
	}
}

func one(t *testing.T, ctx context.Context, c *pgx.Conn) {
	var n int
	if err := c.QueryRow(ctx, "SELECT stock FROM items WHERE id = $1", 2).Scan(&n); err != nil || n != 5 {
		t.Error(n, err)
	}
}

func statements(t *testing.T, ctx context.Context, c *pgx.Conn) {
	for range 3 {
		one(t, ctx, c)
		tx := must(c.Begin(ctx))(t)
		must(tx.Exec(ctx, "UPDATE items SET stock = stock + $1 WHERE id = $2", 0, 1))(t)
		if _, err := tx.Exec(ctx, "SELECT 1 / $1::int", 0); err == nil {
			t.Error("no error")
		}
		if _, err := tx.Exec(ctx, "SELECT 1"); err == nil {
			t.Error("no error in a transaction that has failed")
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Error(err)
		}
		must(c.Exec(ctx, ""))(t)
		must(c.Exec(ctx, "SET TIME ZONE 'UTC'"))(t) // the server answers with a ParameterStatus
		must(c.Exec(ctx, "DO $$ BEGIN RAISE NOTICE 'a notice'; END $$"))(t)
		if _, err := c.Exec(ctx, "SELECT nothing FROM nowhere WHERE a = $1", 1); err == nil {
			t.Error("no error")
		}
	}
	if c.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		must(c.Exec(ctx, "BEGIN; UPDATE items SET stock = stock; SELECT * FROM items; COMMIT"))(t)
	}
}

// large reads rows of 3 MB, and 200,000 small rows.
func large(t *testing.T, ctx context.Context, c *pgx.Conn) {
	var text string
	if err := c.QueryRow(ctx, "SELECT repeat($1, 1000000)", "abc").Scan(&text); err != nil || len(text) != 3_000_000 {
		t.Error(len(text), err)
	}
	if err := c.QueryRow(ctx, "SELECT $1::text", text).Scan(&text); err != nil || len(text) != 3_000_000 {
		t.Error(len(text), err)
	}
	rows := must(c.Query(ctx, "SELECT i, 'row ' || i FROM generate_series(1, 200000) AS i"))(t)
	n := 0
	for rows.Next() {
		n++
	}
	if rows.Err() != nil || n != 200_000 {
		t.Error(n, rows.Err())
	}
}

func parse(name, sql string) *pgproto3.Parse { return &pgproto3.Parse{Name: name, Query: sql} }

// byHand sends messages that no driver here sends.
func byHand(t *testing.T, ctx context.Context, url string, b *both) {
	r := dial(t, url, b.Program.Address)
	r.say(t, "VZ", &pgproto3.FunctionCall{Function: 89, ResultFormatCode: 0}) // version()
	r.say(t, "1t", parse("a", "SELECT generate_series(1, $1::int)"), &pgproto3.Describe{ObjectType: 'S', Name: "a"}, &pgproto3.Flush{})
	r.say(t, "2s", &pgproto3.Bind{PreparedStatement: "a", DestinationPortal: "p", Parameters: [][]byte{[]byte("5")}}, &pgproto3.Execute{Portal: "p", MaxRows: 2}, &pgproto3.Flush{})
	r.say(t, "s", &pgproto3.Execute{Portal: "p", MaxRows: 2}, &pgproto3.Flush{})
	r.say(t, "C3", &pgproto3.Execute{Portal: "p"}, &pgproto3.Close{ObjectType: 'P', Name: "p"}, &pgproto3.Flush{})
	r.say(t, "", &pgproto3.Flush{})
	r.say(t, "Z", &pgproto3.Sync{})
	r.say(t, "ZZ", &pgproto3.Sync{}, &pgproto3.Sync{})
	r.say(t, "EZ", parse("", "SELECT nothing"), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
	r.say(t, "E", parse("", "SELECT nothing"), &pgproto3.Flush{})
	r.say(t, "Z", &pgproto3.Sync{})
	r.say(t, "1EZ", parse("x", "SELECT 1"), parse("x", "SELECT 2"), &pgproto3.Sync{})
	r.say(t, "IZ", &pgproto3.Query{})
	r.say(t, "1n2nIZ", parse("", ""), &pgproto3.Describe{ObjectType: 'S'}, &pgproto3.Bind{}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, &pgproto3.Sync{})
	r.say(t, "CCZCZ", &pgproto3.Query{String: "BEGIN; SELECT 1"}, &pgproto3.Query{String: "COMMIT"})
	// A Query has the effect of a Sync.
	r.say(t, "12CCZ", parse("", "SELECT 1"), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Query{String: "SELECT 2"})
	r.hangUp()
}

// copyByHand: COPY in the extended protocol, and several COPYs in a Query.
func copyByHand(t *testing.T, ctx context.Context, url string, b *both) {
	const sql = "COPY copied FROM STDIN"
	data, done := &pgproto3.CopyData{Data: []byte("1\tx\n")}, &pgproto3.CopyDone{}
	r := dial(t, url, b.Program.Address)
	// libpq's PQexecParams: the server ignores the first Sync.
	r.say(t, "12G", parse("", sql), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
	r.say(t, "CZ", data, data, done, &pgproto3.Sync{})
	r.say(t, "12G", parse("", sql), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{})
	r.say(t, "C", data, &pgproto3.Flush{}, done, &pgproto3.Flush{})
	r.say(t, "1Z", parse("", "SELECT 1"), &pgproto3.Sync{})
	r.say(t, "12G", parse("", sql), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{})
	r.say(t, "EZ", data, &pgproto3.CopyFail{Message: "given up"}, &pgproto3.Sync{})
	r.say(t, "12G", parse("", sql), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
	r.say(t, "C12CZ", data, done, parse("", "SELECT 1"), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
	r.say(t, "CG", &pgproto3.Query{String: "SELECT 1; " + sql + "; SELECT 2; " + sql + "; SELECT 3"})
	r.say(t, "CCG", data, done)
	r.say(t, "CCZ", data, done)
	r.say(t, "12HdcCZ", parse("", "COPY items TO STDOUT"), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
	// Data after a failed COPY is discarded.
	r.say(t, "EZ", &pgproto3.Query{String: "COPY nowhere FROM STDIN"})
	r.say(t, "CZ", data, done, &pgproto3.Query{String: "SELECT 1"})
	for range 20 { // the answer or the data may come first
		// The data may come before the server's request.
		r.say(t, "GCZ", &pgproto3.Query{String: sql}, data, done)
		r.say(t, "GCGCZ", &pgproto3.Query{String: sql + ";" + sql}, data, done, data, done)
		r.say(t, "GCZCZ", &pgproto3.Query{String: sql}, data, done, &pgproto3.Query{String: "SELECT 1"})
		r.say(t, "12GCZ", parse("", sql), &pgproto3.Bind{}, &pgproto3.Execute{}, data, done, &pgproto3.Sync{})
		r.say(t, "12GCZ", parse("", sql), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{}, data, done, &pgproto3.Sync{})
		r.say(t, "EZCZ", &pgproto3.Query{String: "COPY nowhere FROM STDIN"}, data, done, &pgproto3.Query{String: "SELECT 1"})
		r.say(t, "EZCZ", &pgproto3.Query{String: "COPY nowhere FROM STDIN"}, data, done, data, data, done, &pgproto3.Query{String: "SELECT 1"})
		r.say(t, "EZ", parse("", "COPY nowhere FROM STDIN"), &pgproto3.Bind{}, &pgproto3.Execute{}, data, done, &pgproto3.Sync{})
		r.say(t, "EZZ", parse("", "COPY nowhere FROM STDIN"), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}, data, done, &pgproto3.Sync{})
		r.say(t, "CZ", &pgproto3.Query{String: "SELECT 1"})
	}
	r.hangUp()
}

// skipped: after an error the server answers nothing before a Sync.
func skipped(t *testing.T, ctx context.Context, url string, b *both) {
	r := dial(t, url, b.Program.Address)
	bad := []pgproto3.FrontendMessage{parse("", "SELECT 1 / 0"), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{}}
	good := []pgproto3.FrontendMessage{parse("", "SELECT 1"), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{}}
	var all []pgproto3.FrontendMessage
	all = append(append(append(append(all, bad...), good...), good...), &pgproto3.Query{String: "SELECT 2"}, &pgproto3.Sync{})
	for range 20 {
		r.say(t, "EZ", all...)
		r.say(t, "12CZ", append(good, &pgproto3.Sync{})...)
		r.say(t, "E", bad...)
		r.say(t, "Z", append(good, &pgproto3.Sync{})...)
	}
	r.hangUp()
}

func refused(t *testing.T, ctx context.Context, url string, b *both) {
	_, err := pgconn.ConnectConfig(ctx, config(t, url, b.Program.Address))
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != "28P01" {
		t.Error(err)
	}
}

// cancels sends a CancelRequest by ending a context, and by hand.
func cancels(t *testing.T, ctx context.Context, url string, b *both) {
	cc := config(t, url, b.Program.Address)
	cc.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 20 * time.Second}
	}
	c := must(pgconn.ConnectConfig(ctx, cc))(t)
	for _, byContext := range []bool{true, false} {
		asking, cancel := context.WithCancel(ctx)
		result := make(chan error)
		go func() {
			_, err := c.Exec(asking, "SELECT pg_sleep(20)").ReadAll()
			result <- err
		}()
		untilActive(t, ctx, b, url)
		if byContext {
			cancel()
		} else if err := c.CancelRequest(ctx); err != nil {
			t.Error(err)
		}
		var e *pgconn.PgError
		if err := <-result; !errors.As(err, &e) || e.Code != "57014" {
			t.Error(err)
		}
		cancel()
	}
	_ = c.Close(ctx)
}

// untilActive asks the server directly until another connection executes a sleep.
func untilActive(t *testing.T, ctx context.Context, _ *both, url string) {
	c := must(pgx.Connect(ctx, url))(t)
	defer c.Close(ctx)
	for sleeping := 0; sleeping == 0; {
		require.NoError(t, c.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").Scan(&sleeping))
	}
}

// refusals: for an unsupported request, the session answers what to do instead.
func refusals(t *testing.T, server *localserver.Postgres) {
	for _, c := range []struct {
		name  string
		first func(t *testing.T, c net.Conn)
		want  string // part of the error of Login
		told  string // part of the message to the program
	}{
		{"TLS", func(t *testing.T, c net.Conn) {
			must(c.Write(must((&pgproto3.SSLRequest{}).Encode(nil))(t)))(t)
			if b := must(io.ReadAll(io.LimitReader(c, 1)))(t); string(b) != "N" {
				t.Errorf("%q in place of N", b)
			}
			_ = c.Close()
		}, "the program asks for TLS at postgres (sslmode=require); use sslmode=disable or prefer for the test", ""},
		{"TLS without a request", func(t *testing.T, c net.Conn) {
			must(c.Write([]byte{0x16, 3, 1, 0, 5, 1, 0, 0, 0, 0}))(t)
		}, "sslmode=disable", ""},
		{"replication", func(t *testing.T, c net.Conn) {
			must(c.Write(must((&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "shop", "replication": "database"}}).Encode(nil))(t)))(t)
		}, "replication", "replication, which cannot be explored"},
		{"protocol 2", func(t *testing.T, c net.Conn) {
			must(c.Write([]byte{0, 0, 0, 8, 0, 2, 0, 0}))(t)
		}, "only 3.0", "only 3.0"},
		{"a length that lies", func(t *testing.T, c net.Conn) {
			must(c.Write([]byte{0, 127, 0, 8, 0, 3, 0, 0}))(t)
		}, "no messages of PostgreSQL's protocol", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
			ended := make(chan error, 1)
			gate := must(wire.Listen(wire.Open{}, postgres.Protocol(nil), 1, l.(*net.TCPListener), server.Addr, func(err error) { ended <- err }))(t)
			defer gate.Close()
			conn := must(net.Dial("tcp", gate.Addr()))(t)
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			c.first(t, conn)
			err := <-ended
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			var why *wire.Refused
			if !errors.As(err, &why) && c.name != "a length that lies" {
				t.Errorf("%T is no refusal", err)
			}
			if told, _ := io.ReadAll(conn); !strings.Contains(string(told), c.told) {
				t.Errorf("the program was told %q", told)
			}
		})
	}
	t.Run("sslmode=require", func(t *testing.T) {
		b := through(t, server.Addr)
		c := config(t, with(server.URL(), "sslmode=require"), b.Program.Address)
		if _, err := pgconn.ConnectConfig(soon(t), c); err == nil || !strings.Contains(err.Error(), "TLS") {
			t.Error(err)
		}
	})
}
