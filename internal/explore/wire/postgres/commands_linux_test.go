package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

const (
	writes = schedule.Writes
	reads  = schedule.Reads
	local  = schedule.Local
)

// TestCommands runs the tests that can share one server.
func TestCommands(t *testing.T) {
	t.Parallel()
	server := localservertest.Postgres(t)
	setUp(t, server)
	for _, c := range []struct {
		name string
		test func(*testing.T, *localserver.Postgres)
	}{{"commands", commands}, {"ended", ended}, {"values", values}, {"refused", refusals}, {"ghosts", ghosts}, {"splits", splits}, {"pipelines", pipelines}, {"resets", resets}} {
		t.Run(c.name, func(t *testing.T) { c.test(t, server) })
	}
}

// ghosts: when the gate dies in a deadlock of two connections, the server ends both.
func ghosts(t *testing.T, server *localserver.Postgres) {
	ctx := soon(t)
	admin := must(pgconn.Connect(ctx, server.URL()))(t)
	defer admin.Close(ctx)
	waiting := func() string {
		rows := must(admin.Exec(ctx, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%ghosts%'").ReadAll())(t)
		return string(rows[0].Rows[0][0])
	}
	var gates []*both
	var conns []*pgconn.PgConn
	for n := range 2 {
		b := through(t, server.Addr)
		c := must(pgconn.ConnectConfig(ctx, config(t, server.URL(), b.Program.Address)))(t)
		must(c.Exec(ctx, fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock(%d) /* ghosts */", 900+n)).ReadAll())(t)
		gates, conns = append(gates, b), append(conns, c)
	}
	for n, c := range conns {
		raw := must(c.Hijack())(t) // a raw connection sends no CancelRequest at its end
		defer raw.Conn.Close()
		raw.Frontend.SendQuery(&pgproto3.Query{String: fmt.Sprintf("SELECT pg_advisory_xact_lock(%d) /* ghosts */", 901-n)})
		must(0, raw.Frontend.Flush())(t)
	}
	for waiting() != "2" {
	}
	for _, b := range gates {
		b.gate.Commands()[0].Conn().Cut()
	}
	for waiting() != "0" {
	}
}

// commands checks the text, effect, gate and answer of each kind of command.
func commands(t *testing.T, server *localserver.Postgres) {
	b := through(t, server.Addr)
	ctx := soon(t)
	c := must(pgconn.ConnectConfig(ctx, config(t, server.URL(), b.Program.Address)))(t)
	seen := 0
	for _, want := range []struct {
		send   any // the SQL of a Query, or the messages to send
		text   string
		effect schedule.Effect
		gated  bool
		answer string
		notes  string // C(hanged), F(ailed), E(nds), N(amed), S(everal statements), D(ivided)
	}{
		{"SELECT stock FROM items WHERE id = 1", "SELECT stock FROM items WHERE id = 1", reads, true, "stock=1", ""},
		{"SELECT id,\n\tstock FROM items -- all\nORDER BY id", "SELECT id, stock FROM items ORDER BY id", reads, true, "id=1 stock=1; id=2 stock=5", ""},
		{"SELECT * FROM items WHERE id = 9", "SELECT * FROM items WHERE id = 9", reads, true, "no row", "F"},
		{"TABLE items", "TABLE items", reads, true, "id=1 stock=1; id=2 stock=5", ""},
		{"VALUES (1, NULL), (2, 'two words')", "VALUES (1, NULL), (2, 'two words')", reads, true, "column1=1 column2=NULL; column1=2 column2='two words'", ""},
		{"SELECT stock FROM items WHERE id = 1 FOR UPDATE", "SELECT stock FROM items WHERE id = 1 FOR UPDATE", writes, true, "stock=1", "C"},
		{"SELECT nextval('items_id_seq')", "SELECT nextval('items_id_seq')", writes, true, "nextval=3", "C"},
		{"SELECT pg_advisory_lock(7)", "SELECT pg_advisory_lock(7)", writes, true, "pg_advisory_lock=''", "CN"},
		{"SET statement_timeout = 0", "SET statement_timeout = 0", local, false, "ok", ""},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED", local, false, "ok", ""},
		{"SHOW transaction_isolation", "SHOW transaction_isolation", local, false, "transaction_isolation='read committed'", ""},
		{"select 1", "select 1", reads, false, "1", ""},
		{"SELECT t.oid, typarray FROM pg_catalog.pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE typname = 'int4'", "SELECT t.oid, typarray FROM pg_catalog.pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE typname = 'int4'", reads, false, "oid=23 typarray=1007", ""},
		{"LISTEN a", "LISTEN a", writes, true, "ok", ""},
		{";", "(empty query)", local, false, "", ""},
		{"INSERT INTO items (stock) SELECT stock FROM items WHERE id = 9", "INSERT INTO items (stock) SELECT stock FROM items WHERE id = 9", writes, true, "0 changed", "FD"},
		{"INSERT INTO copied SELECT id FROM items WHERE id = 9", "INSERT INTO copied SELECT id FROM items WHERE id = 9", writes, true, "0 changed", "FD"},
		{"BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN ISOLATION LEVEL SERIALIZABLE", local, true, "ok", ""},
		{"INSERT INTO items (stock) SELECT stock FROM items WHERE id = 9", "INSERT INTO items (stock) SELECT stock FROM items WHERE id = 9", writes, true, "0 changed", "F"},
		{"INSERT INTO copied SELECT id FROM items WHERE id = 9", "INSERT INTO copied SELECT id FROM items WHERE id = 9", writes, true, "0 changed", "F"},
		{"ROLLBACK", "ROLLBACK", writes, true, "ok", "CE"},
		{"INSERT INTO copied SELECT id FROM items WHERE id = 9", "INSERT INTO copied SELECT id FROM items WHERE id = 9", writes, true, "0 changed", "FD"},
		{"BEGIN", "BEGIN", local, true, "ok", ""},
		{"DEALLOCATE ALL", "DEALLOCATE ALL", writes, true, "ok", ""},
		{"UPDATE items SET stock = stock - 1 WHERE id = 1", "UPDATE items SET stock = stock - 1 WHERE id = 1", writes, true, "1 changed", "C"},
		{"UPDATE items SET stock = 0 WHERE id = 9", "UPDATE items SET stock = 0 WHERE id = 9", writes, true, "0 changed", "F"},
		{"SELECT nothing", "SELECT nothing", reads, true, `error 42703: column "nothing" does not exist`, "CF"},
		{"SELECT 1", "SELECT 1", reads, false, "error 25P02: current transaction is aborted, commands ignored until end of tr...", "F"},
		{"COMMIT", "COMMIT", writes, true, "ROLLBACK", "CFE"},
		{"INSERT INTO items (stock) VALUES (3) RETURNING id, stock", "INSERT INTO items (stock) VALUES (3) RETURNING id, stock", writes, true, "id=4 stock=3; 1 changed", "C+4"},
		{"BEGIN; DELETE FROM items WHERE id = 4; COMMIT", "BEGIN; DELETE FROM items WHERE id = 4; COMMIT", writes, true, "ok; 1 changed; ok", "CES"},
		{"DO $$ BEGIN PERFORM 1; END $$", "DO $$ BEGIN PERFORM 1; END $$", writes, true, "ok", "CS"},
		{several{"SELECT stock FROM items WHERE id = 1", "UPDATE items SET stock = 1 WHERE id = 1"}, "SELECT stock FROM items WHERE id = 1; UPDATE items SET stock = 1 WHERE id = 1", writes, true, "stock=1; 1 changed", "CS"},
		{several{"BEGIN", "SELECT id FROM items WHERE id = 1"}, "BEGIN; SELECT id FROM items WHERE id = 1", reads, true, "ok; id=1", ""}, // JDBC opens a transaction in this way
		{"ROLLBACK", "ROLLBACK", writes, true, "ok", "CE"},
		{"COPY items TO STDOUT", "COPY items TO STDOUT", writes, true, "2 rows", ""},
		{"COPY copied FROM STDIN\x00", "COPY copied FROM STDIN", writes, true, "ready for data", ""},
		{nil, "COPY data (4 bytes)", writes, false, "1 row", "C"},
		{params{sql: "SELECT stock FROM items WHERE id = $1", values: []string{"1"}}, "SELECT stock FROM items WHERE id = 1", reads, true, "stock=1", ""},
		{
			params{sql: "SELECT stock, id = 1 AS first FROM items WHERE id = $1 AND $2 <> 'a'", values: []string{i4(2), "it's"}, types: []uint32{pgtype.Int4OID, pgtype.TextOID}, binary: true},
			"SELECT stock, id = 1 AS first FROM items WHERE id = 2 AND 'it''s' <> 'a'", reads, true, "stock=5 first=false", "",
		},
		{params{sql: "UPDATE items SET stock = stock WHERE id = $1", values: []string{"2"}, types: []uint32{pgtype.Int8OID}}, "UPDATE items SET stock = stock WHERE id = 2", writes, true, "1 changed", "C"},
		{prepare{"p", "SELECT id FROM items WHERE id = $1"}, "PREPARE SELECT id FROM items WHERE id = $1", reads, false, "", ""},
		{params{name: "p", values: []string{i4(1)}, binary: true}, "SELECT id FROM items WHERE id = 1", reads, true, "id=1", ""},
		{
			params{sql: "SELECT count($1::timestamptz), $2::uuid = $2", values: []string{"2026-01-01", "6f0e4c6e-0000-4000-8000-000000000000"}, types: []uint32{pgtype.TimestamptzOID, pgtype.UUIDOID}},
			"SELECT count(<time>::timestamptz), '6f0e4c6e-0000-4000-8000-000000000000'::uuid = '6f0e4c6e-0000-4000-8000-000000000000'", reads, true, "count=1 true", "",
		},
		{"BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL REPEATABLE READ", local, true, "ok", ""},
		{"SELECT version() IS NULL AS x", "SELECT version() IS NULL AS x", reads, true, "x=false", ""},
		{"SELECT pg_backend_pid() - pg_backend_pid() AS x", "SELECT pg_backend_pid() - pg_backend_pid() AS x", reads, true, "x=0", ""},
		{prepare{"q", "SELECT id FROM items"}, "PREPARE SELECT id FROM items", reads, true, "", ""},
		{"ROLLBACK", "ROLLBACK", writes, true, "ok", "CE"},
		{prepare{"r", "SELECT stock FROM items"}, "PREPARE SELECT stock FROM items", reads, false, "", ""},
		// Outside a SERIALIZABLE transaction, another write can come between the reads and writes of a
		// statement (D).
		{"SET default_transaction_isolation TO 'serializable'", "", local, false, "ok", ""},
		{"BEGIN", "", local, true, "ok", ""},
		{"UPDATE items SET stock = 0 WHERE id IN (SELECT 9 FROM items)", "", writes, true, "0 changed", "F"},
		{"ROLLBACK", "", writes, true, "ok", "CE"},
		{"BEGIN ISOLATION LEVEL REPEATABLE READ", "", local, true, "ok", ""},
		{"UPDATE items SET stock = 0 WHERE id IN (SELECT 9 FROM items)", "", writes, true, "0 changed", "FD"},
		{"ROLLBACK", "", writes, true, "ok", "CE"},
		{"SET default_transaction_isolation TO 'read committed'", "", local, false, "ok", ""},
		{"BEGIN", "", local, true, "ok", ""},
		{"UPDATE items SET stock = 0 WHERE 'serializable' IN (SELECT 'x' FROM items)", "", writes, true, "0 changed", "FD"},
		{"UPDATE items SET stock = 0 WHERE id IN (SELECT 9 FROM items)", "", writes, true, "0 changed", "FD"},
		{"SET default_transaction_isolation TO 'serializable'", "", local, false, "ok", ""}, // the level applies to later transactions
		{"UPDATE items SET stock = 0 WHERE id IN (SELECT 9 FROM items)", "", writes, true, "0 changed", "FD"},
		{"ROLLBACK", "", writes, true, "ok", "CE"}, // undoes the SET, too
		{"BEGIN", "", local, true, "ok", ""},
		{"UPDATE items SET stock = 0 WHERE id IN (SELECT 9 FROM items)", "", writes, true, "0 changed", "FD"},
		{"ROLLBACK", "", writes, true, "ok", "CE"},
		{"SELECT f(1)", "SELECT f(1)", writes, true, "error 42883: function f(integer) does not exist", "F"},
	} {
		send(t, ctx, c, want.send)
		all := b.gate.Commands()
		if seen >= len(all) {
			t.Fatalf("%s: no command came", want.text)
		}
		got := all[seen]
		seen++
		if want.text == "" {
			want.text, _ = want.send.(string)
		}
		if got.Text != want.text || got.Effect != want.effect || got.Gated != want.gated || got.Answer.Text != want.answer || notes(got) != want.notes {
			t.Errorf("got %q %d %t %q %q\nwant %q %d %t %q %q", got.Text, got.Effect, got.Gated, got.Answer.Text, notes(got),
				want.text, want.effect, want.gated, want.answer, want.notes)
		}
		if refused := strings.HasPrefix(want.answer, "error ") || want.answer == "ROLLBACK"; got.Answer.Refused != refused {
			t.Errorf("%s: refused %t: %s", want.text, got.Answer.Refused, got.Answer.Text)
		}
	}
	if n := len(b.gate.Commands()); n != seen {
		t.Errorf("%d commands, want %d", n, seen)
	}
}

func notes(c *wire.Command) (all string) {
	for _, one := range []struct {
		name string
		set  bool
	}{{"C", c.Answer.Changed}, {"F", c.Answer.Failed}, {"E", c.Ends}, {"N", c.Named}, {"S", c.Compound}, {"D", c.Divided}} {
		if one.set {
			all += one.name
		}
	}
	if len(c.Answer.Made) > 0 {
		all += "+" + strings.Join(c.Answer.Made, ",")
	}
	return all
}

// params is a statement of the extended protocol. If name is set, it is prepared under that name.
type params struct {
	name, sql string
	values    []string
	types     []uint32
	binary    bool // format of all values and of the rows
}

type prepare struct{ name, sql string }

// several are statements of the extended protocol before one Sync.
type several []string

func i4(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func send(t *testing.T, ctx context.Context, c *pgconn.PgConn, what any) {
	t.Helper()
	switch q := what.(type) {
	case string:
		if sql, copies := strings.CutSuffix(q, "\x00"); copies {
			_, _ = c.CopyFrom(ctx, strings.NewReader("1\tx\n"), sql)
			return
		}
		_, _ = c.Exec(ctx, q).ReadAll()
	case several:
		batch := &pgconn.Batch{}
		for _, sql := range q {
			batch.ExecParams(sql, nil, nil, nil, nil)
		}
		must(c.ExecBatch(ctx, batch).ReadAll())(t)
	case prepare:
		must(c.Prepare(ctx, q.name, q.sql, nil))(t)
	case params:
		var values [][]byte
		for _, v := range q.values {
			values = append(values, []byte(v))
		}
		var formats []int16
		if q.binary {
			formats = []int16{1}
		}
		if q.name != "" {
			c.ExecPrepared(ctx, q.name, values, formats, formats).Read()
			return
		}
		if r := c.ExecParams(ctx, q.sql, values, q.types, formats, formats).Read(); r.Err != nil {
			t.Error(q.sql, r.Err)
		}
	}
}

// ended: when the schedule ends a wait, the program gets the error that the server sends after a time-out.
func ended(t *testing.T, server *localserver.Postgres) {
	b := through(t, server.Addr)
	ctx := soon(t)
	holder := must(pgconn.Connect(ctx, server.URL()))(t)
	defer holder.Close(ctx)
	must(holder.Exec(ctx, "CREATE ROLE late SUPERUSER LOGIN PASSWORD 'secret'; ALTER ROLE late SET lock_timeout = '1s'; ALTER ROLE late SET statement_timeout = '2s'").ReadAll())(t)
	c := must(pgconn.ConnectConfig(ctx, config(t, with(server.URL(), "user=late password=secret"), b.Program.Address)))(t)
	for _, r := range must(c.Exec(ctx, "SHOW lock_timeout; SHOW statement_timeout; SHOW deadlock_timeout").ReadAll())(t) {
		if got := string(r.Rows[0][0]); got != "0" && got != "1h" {
			t.Error(got, "is a time-out that the role has")
		}
	}
	must(holder.Exec(ctx, "BEGIN; SELECT * FROM items FOR UPDATE").ReadAll())(t)
	result := make(chan error)
	go func() {
		_, err := c.Exec(ctx, "SELECT 1; UPDATE items SET stock = 0").ReadAll()
		result <- err
	}()
	for {
		if n := must(holder.Exec(ctx, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").ReadAll())(t); len(n[0].Rows) > 0 {
			break
		}
	}
	must(holder.Exec(ctx, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").ReadAll())(t)
	if err := <-result; err == nil {
		t.Fatal("it was not ended")
	}
	all := b.gate.Commands()
	got := all[len(all)-1]
	raw := slices.Clone(got.Answer.Raw)
	session := new(postgres.Session)
	if out := session.TimedOut(got, raw); !strings.Contains(string(out), "C55P03\x00Mcanceling statement due to lock timeout\x00") || strings.Contains(string(out), "57014") {
		t.Errorf("%q", out)
	}
	if got.Answer.Text != "error 55P03: canceling statement due to lock timeout" || !got.Answer.Failed {
		t.Error(got.Answer.Text)
	}
	if out := session.Deadlocked(got, raw); !strings.Contains(string(out), "C40P01\x00Mdeadlock detected\x00") || got.Answer.Text != "error 40P01: deadlock detected" {
		t.Errorf("%q", out)
	}
	first := all[0]
	if out := session.TimedOut(first, slices.Clone(raw[:20])); string(out) != string(raw[:20]) {
		t.Errorf("%q was changed", raw[:20])
	}
}
