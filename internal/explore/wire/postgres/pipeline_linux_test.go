package postgres_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// pipelines: if a pipeline reads, each of its statements is a command, and so is the Sync that commits.
// A pipeline that only writes stays one command. The program gets the same answers, also after an
// error.
func pipelines(t *testing.T, server *localserver.Postgres) {
	ctx := soon(t)
	other := must(pgx.Connect(ctx, server.URL()))(t)
	defer other.Close(ctx)
	must(other.Exec(ctx, "CREATE TABLE piped (id int PRIMARY KEY, stock int)"))(t)
	known := &effect.Catalog{Dialect: effect.Postgres, Tables: map[string]*effect.Relation{"piped": {}}}
	const lock, read, write = "SELECT pg_advisory_xact_lock(1)", "SELECT stock FROM piped WHERE id = 1", "UPDATE piped SET stock = stock - 1 WHERE id = 1"
	for _, c := range []struct{ statements, commands []string }{
		{[]string{lock, read, write}, []string{lock, read, write, "SYNC"}},
		{[]string{"BEGIN", lock, read, write, "COMMIT"}, []string{"BEGIN; " + lock, read, write, "COMMIT"}},
		{[]string{write, "INSERT INTO piped VALUES (2, 2)"}, []string{write + "; INSERT INTO piped VALUES (2, 2)"}},
		{[]string{"BEGIN", read}, []string{"BEGIN; " + read}},
		{[]string{read, "INSERT INTO piped VALUES (1, 2)", write}, []string{read, "INSERT INTO piped VALUES (1, 2)", write, "SYNC"}}, // the second statement fails
	} {
		run := func(catalog func() *effect.Catalog) (commands, answers []string) {
			must(other.Exec(ctx, "TRUNCATE piped; INSERT INTO piped VALUES (1, 1)"))(t)
			gate := &wiretest.Recorder{}
			conn := must(pgconn.ConnectConfig(ctx, config(t, server.URL(), wiretest.Proxy(t, gate, postgres.Protocol(catalog), server.Addr))))(t)
			defer conn.Close(ctx)
			p := conn.StartPipeline(ctx)
			for _, sql := range c.statements {
				p.SendQueryParams(sql, nil, nil, nil, nil)
			}
			must(0, p.Sync())(t)
			for {
				got, err := p.GetResults()
				if err != nil {
					answers = append(answers, err.Error())
				}
				switch got := got.(type) {
				case *pgconn.ResultReader:
					one := got.Read()
					answers = append(answers, one.CommandTag.String())
					for _, row := range one.Rows {
						answers = append(answers, string(row[0]))
					}
					continue
				case nil:
					if err != nil {
						continue
					}
				}
				break
			}
			_ = p.Close()
			for _, o := range gate.Commands() {
				if o.Gated {
					commands = append(commands, o.Text)
				}
			}
			return commands, answers
		}
		_, want := run(nil)
		commands, got := run(func() *effect.Catalog { return known })
		if !slices.Equal(commands, c.commands) || !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%q: %q, answered %q; want %q, answered %q", c.statements, commands, got, c.commands, want)
		}
	}
}

// resets: the statements with which a pool resets a connection pass the gate. They wait there if the
// connection may have a named lock, listens, or is in a transaction.
func resets(t *testing.T, server *localserver.Postgres) {
	ctx := soon(t)
	b := through(t, server.Addr)
	c := must(pgconn.ConnectConfig(ctx, config(t, server.URL(), b.Program.Address)))(t)
	defer c.Close(ctx)
	const reset = "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;"
	want := []struct {
		sql   string
		gated bool
	}{
		{"SELECT stock FROM items WHERE id = 1", true},
		{reset, false},
		{"SELECT pg_advisory_xact_lock(1)", true},
		{reset, false},
		{"SELECT pg_try_advisory_lock(1)", true},
		{reset, true},
		{reset, false},
		{"LISTEN a", true},
		{reset, true},
		{"DO 'BEGIN PERFORM pg_advisory_lock(1); END'", true},
		{reset, true},
		{"DISCARD ALL", false},
		{"BEGIN", true},
		{reset, true},
		{"COMMIT", true},
	}
	for _, one := range want {
		must(c.Exec(ctx, one.sql).ReadAll())(t)
	}
	for i, o := range b.gate.Commands() {
		if i < len(want) && (o.Gated != want[i].gated || want[i].sql == reset && o.Compound != o.Gated && i < len(want)-2) {
			t.Errorf("%d: %s: gated %t, several statements %t; want gated %t", i, o.Text, o.Gated, o.Compound, want[i].gated)
		}
	}
}
