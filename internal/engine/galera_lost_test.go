package engine_test

import (
	"context"
	"database/sql"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
)

// TestGaleraStaleRead shows the lost update of a lock outside the cluster. The node of the next holder
// has not yet applied the commit of the last holder. The cluster is healthy: FLUSH TABLES, as a backup
// sends it, only delays the node. Reads that wait (wsrep_sync_wait) do not see the old stock.
func TestGaleraStaleRead(t *testing.T) {
	tier.Soak(t, "needs Galera")
	a := enginetest.Galera(t, 0)
	b := enginetest.At(t, a, 1)
	first, next, backup, waiting := connection(t, a), connection(t, b), connection(t, b), connection(t, b)
	run(t, first, "UPDATE product SET amount = 10 WHERE name = 'apple'")
	if err := a.Cluster.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, backup, "FLUSH TABLES WITH READ LOCK")

	run(t, first, "UPDATE product SET amount = 9 WHERE name = 'apple'") // under the lock, which then is free
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
	if got := <-causal; got != 9 {
		t.Errorf("a read that waits sees %d, want 9", got)
	}
	run(t, next, "BEGIN")
	run(t, next, "UPDATE product SET amount = 9 WHERE name = 'apple'") // 10 - 1, as it has read
	run(t, next, "COMMIT")                                             // and is not refused
	if err := a.Cluster.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, first, "SELECT amount FROM product WHERE name = 'apple'"); got != 9 {
		t.Errorf("%d are left of 10 after two sales; want 9, a lost update", got)
	}
}

// TestGaleraLostUpdates counts the lost updates of a healthy cluster: clients of three nodes
// read a number in a transaction and write it plus one. Commits beyond the growth of the number are
// lost updates. TEST_GALERA_SECONDS is the duration (default 1).
func TestGaleraLostUpdates(t *testing.T) {
	tier.Soak(t, "needs Galera")
	seconds, err := time.ParseDuration(os.Getenv("TEST_GALERA_SECONDS") + "s")
	if err != nil {
		seconds = time.Second
	}
	a := enginetest.Galera(t, 0)
	nodes := []*engine.Engine{a, enginetest.At(t, a, 1), enginetest.At(t, a, 2)}
	for _, c := range []struct {
		name     string
		settings []string
		isolated sql.IsolationLevel
		loses    bool // updates must be lost; otherwise they are only counted
	}{
		{"REPEATABLE READ", nil, sql.LevelRepeatableRead, true},
		{"REPEATABLE READ, innodb_snapshot_isolation", []string{"SET innodb_snapshot_isolation = ON"}, sql.LevelRepeatableRead, false},
		{"the same, wsrep_sync_wait", []string{"SET innodb_snapshot_isolation = ON", "SET wsrep_sync_wait = 15"}, sql.LevelRepeatableRead, false},
		{"SERIALIZABLE", nil, sql.LevelSerializable, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := a.Admin.Exec("UPDATE product SET amount = 0 WHERE name = 'apple'").Error; err != nil {
				t.Fatal(err)
			}
			if err := a.Cluster.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			var committed, refused atomic.Int64
			ctx, cancel := context.WithTimeout(t.Context(), seconds)
			defer cancel()
			var all sync.WaitGroup
			for i := range 6 {
				conn := connection(t, nodes[i%3])
				for _, s := range c.settings {
					run(t, conn, s)
				}
				all.Go(func() {
					for ctx.Err() == nil {
						if addOne(conn, c.isolated) == nil {
							committed.Add(1)
						} else {
							refused.Add(1)
						}
					}
				})
			}
			all.Wait()
			if err := a.Cluster.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			grown := ask(t, connection(t, a), "SELECT amount FROM product WHERE name = 'apple'")
			t.Logf("%s: %d committed, %d refused, the number has grown by %d: %d updates lost", seconds, committed.Load(), refused.Load(), grown, committed.Load()-grown)
			if c.loses && committed.Load() == grown {
				t.Error("no update was lost")
			}
		})
	}
}

func addOne(conn *sql.Conn, level sql.IsolationLevel) error {
	tx, err := conn.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after COMMIT there is nothing to do
	var n int64
	if err := tx.QueryRow("SELECT amount FROM product WHERE name = 'apple'").Scan(&n); err != nil {
		return err
	}
	if _, err := tx.Exec("UPDATE product SET amount = ? WHERE name = 'apple'", n+1); err != nil {
		return err
	}
	return tx.Commit()
}
