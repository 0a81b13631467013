package engine_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/sqlerror"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

func connection(t *testing.T, e *engine.Engine) *sql.Conn {
	t.Helper()
	pool, err := e.DB.DB()
	require.NoError(t, err)
	conn, err := pool.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func run(t *testing.T, conn *sql.Conn, statement string) {
	t.Helper()
	require.NoError(t, expect.ErrorOf(conn.ExecContext(t.Context(), statement)), statement)
}

func ask(t *testing.T, conn *sql.Conn, query string) (value int64) {
	t.Helper()
	require.NoError(t, conn.QueryRowContext(t.Context(), query).Scan(&value), query)
	return value
}

// TestGalera: each process begins at its own node, and the engine knows the properties of a cluster.
func TestGalera(t *testing.T) {
	tier.Soak(t, "needs Galera")
	a := enginetest.Galera(t, 0)
	b := enginetest.At(t, a, 1)
	if a.Database != dialect.Galera || a.Lacks[dialect.NamedLocks] == "" {
		t.Errorf("%s lacks %v", a.Database, a.Lacks)
	}
	ports := map[int64]bool{}
	for _, e := range []*engine.Engine{a, b, enginetest.At(t, a, 2), enginetest.At(t, a, 3)} {
		ports[ask(t, connection(t, e), "SELECT @@port")] = true
	}
	expect.Equal(t, len(ports), 3, "nodes of 4 processes")
}

// TestGaleraNodes: a shop leaves dead nodes and warns of them. If all nodes are dead, it reports an error
// in bounded time, and recovers by itself.
func TestGaleraNodes(t *testing.T) {
	tier.Soak(t, "needs Galera")
	t.Parallel()
	cluster := localservertest.Galera(t)
	require.NoError(t, cluster.Nodes()[0].Kill())
	e, err := engine.Open(t.Context(), engine.Config{DB: cluster.URL(), Wait: enginetest.Wait, Conns: 4})
	require.NoError(t, err)
	defer e.Close()
	if len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], cluster.Nodes()[0].Addr) {
		t.Errorf("warnings: %q, want one of the dead node", e.Warnings)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	expect.NoError(t, e.DB.WithContext(ctx).Exec("SELECT 1").Error, "with a dead node")
	start := time.Now()
	expect.NoError(t, e.Cluster.Settle(ctx))
	for _, node := range cluster.Nodes()[1:] {
		require.NoError(t, node.Kill())
	}
	err = e.DB.WithContext(ctx).Exec("SELECT 1").Error
	expect.Equal(t, sqlerror.KindOf(err), sqlerror.Down, "all are dead", err)
	t.Logf("%s: %v", time.Since(start), err)
	require.NoError(t, cluster.Bootstrap())
	expect.NoError(t, e.DB.WithContext(t.Context()).Exec("SELECT 1").Error, "the cluster is back")
}

// TestGaleraStaleRead shows the lost update of a lock outside the database. The node of the next holder has not
// yet applied the commit of the last holder. The cluster is healthy: FLUSH TABLES, as a backup sends it, only
// delays the node. Reads that wait (wsrep_sync_wait) do not see the old stock.
func TestGaleraStaleRead(t *testing.T) {
	tier.Soak(t, "needs Galera")
	a := enginetest.Galera(t, 0)
	b := enginetest.At(t, a, 1)
	first, next, backup, waiting := connection(t, a), connection(t, b), connection(t, b), connection(t, b)
	run(t, first, "UPDATE product SET amount = 10 WHERE name = 'apple'")
	require.NoError(t, a.Cluster.Settle(t.Context()))
	run(t, backup, "FLUSH TABLES WITH READ LOCK")

	run(t, first, "UPDATE product SET amount = 9 WHERE name = 'apple'") // the first buyer writes under its lock, which it then releases
	if got := ask(t, next, "SELECT amount FROM product WHERE name = 'apple'"); got != 10 {
		t.Fatalf("the next holder reads %d: the read is not stale", got)
	}
	run(t, waiting, "SET wsrep_sync_wait = 1")
	causal := make(chan int64, 1)
	go func() {
		var amount int64
		_ = waiting.QueryRowContext(context.Background(), "SELECT amount FROM product WHERE name = 'apple'").Scan(&amount)
		causal <- amount
	}()
	run(t, backup, "UNLOCK TABLES")
	expect.Equal(t, <-causal, 9, "a read that waits sees")
	run(t, next, "BEGIN")
	run(t, next, "UPDATE product SET amount = 9 WHERE name = 'apple'") // 10 - 1, from its stale read
	run(t, next, "COMMIT")                                             // the cluster accepts it
	require.NoError(t, a.Cluster.Settle(t.Context()))
	expect.Equal(t, ask(t, first, "SELECT amount FROM product WHERE name = 'apple'"), 9, "left of 10 after two sales")
}
