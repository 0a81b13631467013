package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/sqlerror"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestGaleraCommit cuts a node off while clients commit there. Afterwards it compares the answer to
// each client with the data on all nodes. A refused commit must be missing, and an acknowledged one
// must be there.
func TestGaleraCommit(t *testing.T) {
	tier.Soak(t, "waits for time-outs")
	t.Parallel()
	cluster := localservertest.Galera(t)
	e, err := engine.Open(t.Context(), engine.Config{DB: cluster.URL(), Wait: enginetest.Wait, Conns: 32})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	type told struct {
		purchaser string // ids of rolled-back records may be reused
		err       error
	}
	var (
		mu  sync.Mutex
		all []told
		end = make(chan struct{})
		wg  sync.WaitGroup
	)
	for client := range 16 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				r := purchase.Receipt{Product: "apple", Purchaser: fmt.Sprintf("client-%d-%d", client, n), Amount: 1, Strategy: "test"}
				err := purchase.InTx(t.Context(), e.DB, func(tx *gorm.DB) error {
					return purchase.Insert(t.Context(), tx, "", time.Now(), &r)
				})
				mu.Lock()
				all = append(all, told{r.Purchaser, err})
				mu.Unlock()
				if err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	node := cluster.Nodes()[0]
	time.Sleep(200 * time.Millisecond)
	if err := node.Isolate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, cluster.Nodes()[1], 2)
	if !node.Refuses(t.Context()) {
		t.Error("the node that was cut off takes writes")
	}
	if err := node.Isolate(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	for _, n := range cluster.Nodes() {
		awaitStatus(t, n, 3)
	}
	close(end)
	wg.Wait()

	nodes, err := e.Cluster.DBs()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, node := range nodes {
		var purchasers []string
		if err := node.Raw("SELECT purchaser FROM purchase_history").Scan(&purchasers).Error; err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, purchaser := range purchasers {
			there[purchaser] = true
		}
		for _, told := range all {
			has := there[told.purchaser]
			unknown := errors.Is(told.err, purchase.ErrUnknownOutcome)
			switch {
			case told.err == nil && !has:
				t.Errorf("the record of %s was committed and is not there", told.purchaser)
			case told.err != nil && !unknown && has:
				t.Errorf("the record of %s is there, and its client was told: %v", told.purchaser, told.err)
			}
			kinds[kind(told.err, has)]++
		}
	}
	t.Logf("at %d nodes: %v", len(nodes), kinds)
}

// kind classifies the answer to a client.
func kind(err error, has bool) string {
	var said *mysqldriver.MySQLError
	switch {
	case err == nil:
		return "committed"
	case errors.As(err, &said):
		return fmt.Sprintf("error %d, kind %d, unknown %t, there %t", said.Number, sqlerror.KindOf(err), errors.Is(err, purchase.ErrUnknownOutcome), has)
	}
	return fmt.Sprintf("broken, unknown %t, there %t", errors.Is(err, purchase.ErrUnknownOutcome), has)
}
