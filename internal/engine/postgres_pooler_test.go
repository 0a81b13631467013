package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/tier"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestPooler: behind PgBouncer in transaction mode a session lock does not exclude another client, and a
// prepared statement is missing or already exists. The shop detects the pooler. It then uses
// transaction locks and unprepared statements.
func TestPooler(t *testing.T) {
	tier.Soak(t, "needs PgBouncer")
	ctx, server := t.Context(), localservertest.Postgres(t)
	pooler, err := server.Pooler()
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(server.URL(), server.Address(), pooler.Address(), 1)
	clients := make([]*pgx.Conn, 2)
	for i := range clients {
		if clients[i], err = pgx.Connect(ctx, url); err != nil {
			t.Fatal(err)
		}
		defer clients[i].Close(context.WithoutCancel(ctx))
	}
	try := func(c *pgx.Conn, lock string) (taken bool, err error) {
		err = c.QueryRow(ctx, "SELECT "+lock+"(1)", pgx.QueryExecModeExec).Scan(&taken)
		return taken, err
	}
	for i, c := range clients {
		if taken, err := try(c, "pg_try_advisory_lock"); err != nil || !taken {
			t.Errorf("client %d: a lock of the session is %t, %v; want that both have it", i+1, taken, err)
		}
	}

	tx, err := clients[0].Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(2)", pgx.QueryExecModeExec); err != nil {
		t.Fatal(err)
	}
	var taken bool
	if err := clients[1].QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(2)", pgx.QueryExecModeExec).Scan(&taken); err != nil || taken {
		t.Errorf("a lock of the transaction is another's: %t, %v", taken, err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}

	var broken error
	for _, c := range clients {
		if _, err := c.Exec(ctx, "SELECT $1::int", 1); err != nil {
			broken = err
		}
	}
	var said *pgconn.PgError
	switch {
	case broken == nil: // PgBouncer 1.21 and later can keep them: max_prepared_statements
		t.Log("this PgBouncer keeps prepared statements")
	case !errors.As(broken, &said) || said.Code != "42P05": // duplicate_prepared_statement
		t.Errorf("a statement that both clients prepare: %v", broken)
	}

	_, err = engine.Open(ctx, engine.Config{DB: url + "&default_transaction_isolation=serializable", Wait: enginetest.Wait, Conns: 8})
	if err == nil || !strings.Contains(err.Error(), "leave it out of the URL") {
		t.Errorf("a setting that the pooler does not know: %v", err)
	}

	e, err := engine.Open(ctx, engine.Config{DB: url, Wait: enginetest.Wait, Conns: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "a pooler stands in between") {
		t.Errorf("warnings %q", e.Warnings)
	}
	done := make(chan error)
	for range 8 {
		go func() {
			for range 20 {
				if err := e.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
					return tx.Exec("UPDATE product SET amount = amount + ? WHERE name = ?", 1, "apple").Error
				}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
