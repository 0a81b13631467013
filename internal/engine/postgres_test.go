package engine_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/sqlerror"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// TestPostgresRefused: an unsuitable server is rejected in one line with the reason, and stays unchanged.
func TestPostgresRefused(t *testing.T) {
	e := enginetest.Postgres(t)
	for _, statement := range []string{
		"CREATE SCHEMA owned", "CREATE USER poor PASSWORD 'secret'", "GRANT USAGE ON SCHEMA owned TO poor",
		"CREATE USER reader PASSWORD 'secret'", "ALTER USER reader SET default_transaction_read_only = on",
	} {
		require.NoError(t, e.Admin.Exec(statement).Error)
	}
	defer e.Admin.Exec("DROP SCHEMA owned CASCADE; DROP USER poor, reader")
	of := func(change func(*url.URL)) string {
		u, err := url.Parse(e.URLs.DB)
		require.NoError(t, err)
		u.RawQuery = "sslmode=disable&search_path=owned"
		change(u)
		return u.String()
	}
	mysql, err := url.Parse(enginetest.Local(t).URLs.DB)
	require.NoError(t, err)
	for _, c := range []struct{ name, url, says string }{
		{"wrong password", of(func(u *url.URL) { u.User = url.UserPassword("shop", "secret") }), "password authentication failed"},
		{"no such database", of(func(u *url.URL) { u.Path = "/nowhere" }), `database "nowhere" does not exist`},
		{"no right to create tables", of(func(u *url.URL) { u.User = url.UserPassword("poor", "secret") }), "permission denied for schema owned (SQLSTATE 42501); let the database's owner"},
		{"read-only", of(func(u *url.URL) { u.User = url.UserPassword("reader", "secret") }), "use the primary"},
		{"TLS refused", of(func(u *url.URL) { u.RawQuery = "sslmode=require" }), "set sslmode to prefer"},
		{"no such sslmode", of(func(u *url.URL) { u.RawQuery = "sslmode=maybe" }), "sslmode is invalid"},
		{"no host", "postgres://shop:secret@/shop", "names no host"},
		{"no database", "postgres://shop:secret@127.0.0.1:1", "names no database"},
		{"nobody there", "postgres://shop:secret@127.0.0.1:1/shop", "connection refused"},
		{"MySQL's URL", of(func(u *url.URL) { u.Scheme = "mysql"; u.RawQuery = "" }), "a PostgreSQL server answers there; use postgres://"},
		{"PostgreSQL's URL at MySQL", "postgres://shop:secret@" + mysql.Host + "/shop", "a MySQL or MariaDB server answers there; use mysql://"},
		{"too old", "postgres://shop:secret@" + oldPostgres(t) + "/shop", "PostgreSQL 12 or later is needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			opened, err := engine.Open(t.Context(), engine.Config{DB: c.url, Wait: enginetest.Wait, Conns: 4})
			if err == nil {
				_ = opened.Close()
				t.Fatal("it was opened")
			}
			if text := err.Error(); !strings.Contains(text, c.says) || strings.Contains(text, "\n") || strings.Contains(text, "secret") {
				t.Errorf("%v; want one line with %q and no password", err, c.says)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("refused after %s", took)
			}
		})
	}
	var tables int
	if err := e.Admin.Raw("SELECT count(*) FROM pg_tables WHERE schemaname = 'owned'").Scan(&tables).Error; err != nil || tables != 0 {
		t.Errorf("%d tables were left, %v", tables, err)
	}
}

// oldPostgres answers the first questions as PostgreSQL 11 does.
func oldPostgres(t *testing.T) (address string) {
	t.Helper()
	return localservertest.Serve(t, serveOld)
}

func serveOld(conn net.Conn) {
	b := pgproto3.NewBackend(conn, conn)
	for started := false; !started; {
		message, err := b.ReceiveStartupMessage()
		if err != nil {
			return
		}
		if _, tls := message.(*pgproto3.SSLRequest); tls {
			_, _ = conn.Write([]byte("N"))
			continue
		}
		started = true
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	_ = b.Flush()
	const text, number = 25, 23 // ids of PostgreSQL types
	fields, row := []pgproto3.FieldDescription{}, [][]byte{}
	for {
		message, err := b.Receive()
		if err != nil {
			return
		}
		switch m := message.(type) {
		case *pgproto3.Parse:
			fields, row = []pgproto3.FieldDescription{{Name: []byte("pid"), DataTypeOID: number}}, [][]byte{{'0'}}
			if !strings.Contains(m.Query, "pg_backend_pid") {
				fields = []pgproto3.FieldDescription{
					{Name: []byte("number"), DataTypeOID: number, Format: 1},
					{Name: []byte("version"), DataTypeOID: text},
					{Name: []byte("read_only"), DataTypeOID: text},
					{Name: []byte("commits"), DataTypeOID: text},
					{Name: []byte("level"), DataTypeOID: text},
				}
				row = [][]byte{{0, 1, 0xad, 0xc6}, []byte("PostgreSQL 11.22 on x86_64"), []byte("off"), []byte("on"), []byte("read committed")}
			}
			b.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Describe:
			if m.ObjectType == 'S' {
				b.Send(&pgproto3.ParameterDescription{})
			}
			b.Send(&pgproto3.RowDescription{Fields: fields})
		case *pgproto3.Bind:
			b.Send(&pgproto3.BindComplete{})
		case *pgproto3.Execute:
			b.Send(&pgproto3.DataRow{Values: row})
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			_ = b.Flush()
		}
	}
}

// TestPostgresCommit: a buyer that gives up does not interrupt a COMMIT. A COMMIT is unknown if the
// server did not finish it, or if it finished without the synchronous replica.
func TestPostgresCommit(t *testing.T) {
	server := localservertest.Postgres(t)
	e, err := engine.Open(t.Context(), engine.Config{DB: server.URL(), Wait: enginetest.Wait, Conns: 4})
	require.NoError(t, err)
	defer e.Close()
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"} {
		require.NoError(t, e.Admin.Exec(statement).Error)
	}
	for i, end := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		err := cutCommit(t, e.Admin, end, func(ctx context.Context) error {
			return purchase.InTx(ctx, e.DB, func(tx *gorm.DB) error {
				return tx.Exec("UPDATE product SET amount = ? WHERE name = 'apple'", i).Error
			})
		})
		expect.ErrorIs(t, err, purchase.ErrUnknownOutcome, end, "in a COMMIT")
		var amount int
		if err := e.Admin.Raw("SELECT amount FROM product WHERE name = 'apple'").Scan(&amount).Error; err != nil || amount != i {
			t.Errorf("%s in a COMMIT: the stock is %d, %v; want %d: it was committed here", end, amount, err, i)
		}
	}
	// The record exists. A repeated request is not answered with the sale, since the replica lacks
	// it.
	order := purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1, IdempotencyKey: "key"}
	sale := &purchase.Receipt{Product: order.Product, Purchaser: order.Purchaser, Amount: 1}
	_ = cutCommit(t, e.Admin, "pg_cancel_backend", func(ctx context.Context) error {
		return purchase.InTx(ctx, e.DB, func(tx *gorm.DB) error {
			return purchase.InsertAll(ctx, tx, []string{order.IdempotencyKey}, time.Now(), []*purchase.Receipt{sale})
		})
	})
	if record, err := purchase.ByKey(e.Admin, order.IdempotencyKey); err != nil || record == nil {
		t.Fatalf("the record: %v, %v", record, err)
	}
	err = cutCommit(t, e.Admin, "pg_cancel_backend", func(ctx context.Context) error {
		_, err := purchase.NewIdempotent(nil, e.DB).Buy(ctx, order)
		return err
	})
	expect.ErrorIs(t, err, purchase.ErrUnknownOutcome, "asked again")
}

// cutCommit ends the wait of a COMMIT for a replica after its buyer has given up, and returns the answer
// to the buyer.
func cutCommit(t *testing.T, admin *gorm.DB, end string, buy func(context.Context) error) error {
	t.Helper()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	told := make(chan error, 1)
	buying := func() { told <- buy(ctx) }
	go buying()
	var pid int
	require.Eventually(t, "a COMMIT waits for the replica", func() bool {
		select {
		case <-told: // the server has not read the new setting yet, so this COMMIT waited for no replica
			go buying()
		default:
		}
		require.NoError(t, admin.Raw("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&pid).Error)
		return pid != 0
	})
	giveUp()
	require.NoError(t, admin.Exec("SELECT "+end+"(?)", pid).Error)
	return <-told
}

// TestPostgresWaitEnds: the server itself ends a wait for a locked row, soon after the shop's own limit.
func TestPostgresWaitEnds(t *testing.T) {
	u := enginetest.Postgres(t).URLs
	u.Wait = 100 * time.Millisecond
	e, err := engine.Open(t.Context(), u)
	require.NoError(t, err)
	defer e.Close()
	holder := e.Admin.Begin()
	defer holder.Rollback()
	const take = "UPDATE product SET amount = amount - 1 WHERE name = 'apple'"
	require.NoError(t, holder.Exec(take).Error)
	start := time.Now()
	err = e.DB.Exec(take).Error
	if sqlerror.KindOf(err) != sqlerror.Contended || time.Since(start) < time.Second {
		t.Errorf("%v after %s; want lock_not_available after a second and a bit", err, time.Since(start))
	}
	for setting, want := range map[string]string{"lock_timeout": "1100ms", "statement_timeout": "10100ms", "idle_in_transaction_session_timeout": "60100ms"} {
		for db, want := range map[*gorm.DB]string{e.DB: want, e.Admin: "0"} {
			var got string
			if err := db.Raw("SHOW " + setting).Scan(&got).Error; err != nil || got != want {
				t.Errorf("%s is %s, %v; want %s", setting, got, err, want)
			}
		}
	}
}

// TestPostgresReadOnly: a server that no longer accepts writes, such as an old primary after a failover,
// is not ready.
func TestPostgresReadOnly(t *testing.T) {
	e, err := engine.Open(t.Context(), engine.Config{DB: localservertest.Postgres(t).URL(), Wait: enginetest.Wait, Conns: 4})
	require.NoError(t, err)
	defer e.Close()
	if down := e.Check(t.Context()); len(down) > 0 {
		t.Fatalf("down: %v", down)
	}
	for _, statement := range []string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"} {
		require.NoError(t, e.Admin.Exec(statement).Error)
	}
	var down map[string]error
	require.Eventually(t, "it is not ready", func() bool {
		down = e.Check(t.Context())
		return len(down) > 0
	})
	if err := down["database"]; err == nil || !strings.Contains(err.Error(), "use the primary") {
		t.Errorf("down: %v", down)
	}
}

// TestPooler: the shop detects PgBouncer in transaction mode, where a prepared statement may be missing or
// exist already. It then uses unprepared statements.
func TestPooler(t *testing.T) {
	tier.Soak(t, "needs PgBouncer")
	ctx, server := t.Context(), localservertest.Postgres(t)
	pooler, err := server.Pooler()
	require.NoError(t, err)
	url := strings.Replace(server.URL(), server.Address(), pooler.Address(), 1)
	_, err = engine.Open(ctx, engine.Config{DB: url + "&default_transaction_isolation=serializable", Wait: enginetest.Wait, Conns: 8})
	if err == nil || !strings.Contains(err.Error(), "leave it out of the URL") {
		t.Errorf("a setting that the pooler does not know: %v", err)
	}

	e, err := engine.Open(ctx, engine.Config{DB: url, Wait: enginetest.Wait, Conns: 8})
	require.NoError(t, err)
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
		expect.NoError(t, <-done)
	}
}
