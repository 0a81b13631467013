package postgres_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// splits: the program gets the same bytes whether a statement is executed in two steps or in one, also
// if the server refuses the commit. Another connection sees the changes only after the second step.
func splits(t *testing.T, server *localserver.Postgres) {
	ctx := soon(t)
	other := must(pgx.Connect(ctx, server.URL()))(t)
	defer other.Close(ctx)
	var mu sync.Mutex // the server makes the two goroutines alternate, but the race detector does not see that
	sum := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		if err := other.QueryRow(ctx, "SELECT coalesce(sum(a), 0) FROM split").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	must(other.Exec(ctx, "CREATE TABLE split (id serial, a int UNIQUE, late int UNIQUE DEFERRABLE INITIALLY DEFERRED)"))(t)
	modes := []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeCacheStatement}
	statements := []struct {
		sql   string
		args  []any
		split bool
	}{
		{"INSERT INTO split (a) VALUES (1)", nil, true},
		{"INSERT INTO split (a) VALUES ($1) RETURNING id, a", []any{2}, true},
		{"INSERT INTO split (a) VALUES (1)", nil, true}, // refused by the first step
		{"INSERT INTO split (a, late) VALUES (3, 9)", nil, true},
		{"INSERT INTO split (a, late) VALUES ($1, 9) RETURNING a", []any{4}, true}, // refused by the second step
		{"UPDATE split SET a = a + 10 WHERE a < $1", []any{5}, true},
		{"UPDATE split SET a = 0 WHERE a = 99", nil, true},
		{"BEGIN", nil, false},
		{"INSERT INTO split (a) VALUES (5)", nil, false},
		{"COMMIT", nil, false},
		{"SELECT a FROM split ORDER BY a", nil, false},
	}
	for _, mode := range modes {
		var split int
		saw := -1
		said := func(between func(*wire.Command)) []string {
			mu.Lock()
			must(other.Exec(ctx, "TRUNCATE split RESTART IDENTITY"))(t)
			mu.Unlock()
			g := wiretest.NewSplitting(between)
			settings := must(pgx.ParseConfig(server.URL()))(t)
			settings.Config = *config(t, server.URL(), wiretest.Proxy(t, g, postgres.Protocol(nil), server.Addr))
			settings.DefaultQueryExecMode = mode
			c := must(pgx.ConnectConfig(ctx, settings))(t)
			for _, s := range statements {
				before := sum()
				rows, _ := c.Query(ctx, s.sql, s.args...) // Answers contains an error, too
				rows.Close()
				mu.Lock()
				if between != nil && s.split && saw != -1 && saw != before {
					t.Errorf("%v, %s: another connection saw %d between the steps, and %d before", mode, s.sql, saw, before)
				}
				saw = -1
				mu.Unlock()
			}
			_ = c.Close(ctx)
			return g.Answers(t)
		}
		plain := said(nil)
		twice := said(func(*wire.Command) {
			n := sum()
			mu.Lock()
			defer mu.Unlock()
			split++
			saw = n
		})
		if len(plain) < len(statements) || !slices.Equal(plain, twice) {
			t.Errorf("%v: one step:\n%q\ntwo:\n%q", mode, plain, twice)
		}
		if split != 7 {
			t.Errorf("%v: %d statements were two steps, want 7", mode, split)
		}
	}
}
