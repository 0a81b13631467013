package engine_test

import (
	"context"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/tier"
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
