package purchase_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// never is a strategy that never sells: a repeated order must be answered without it.
type never struct{}

func (never) Buy(context.Context, purchase.Order) (purchase.Receipt, error) {
	return purchase.Receipt{}, purchase.ErrSoldOut
}

// TestReplayOnDisk: another process may still be committing the sale of a repeated order. The
// answer is sent only when the sale survives a crash of the database.
func TestReplayOnDisk(t *testing.T) {
	server := localservertest.MySQL(t)
	e, err := engine.Open(t.Context(), engine.Config{DB: server.URL(), Wait: enginetest.Wait, Conns: 4})
	require.NoError(t, err)
	defer e.Close()
	o := purchase.Order{Product: "apple", Purchaser: "late", Amount: 1, IdempotencyKey: "late"}
	// The COMMIT of this sale is not flushed to disk.
	err = errors.Join(
		product.Put(e.DB, "apple", 10),
		e.DB.Exec("SET GLOBAL innodb_flush_log_at_timeout = 2700").Error,
		e.DB.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 0").Error,
	)
	if err == nil {
		section := purchase.Section{DB: e.DB, Strategy: "none", Now: time.Now}
		_, err = section.Sell(t.Context(), o, 0)
	}
	err = errors.Join(err, e.DB.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1").Error)
	require.NoError(t, err)
	before, err := purchase.ByKey(e.DB, "late")
	require.NoError(t, err)
	receipt, err := purchase.NewIdempotent(never{}, e.DB).Buy(t.Context(), o)
	if err != nil || receipt.ID != before.ID || !receipt.Replayed {
		t.Fatalf("%+v, %v", receipt, err)
	}
	require.NoError(t, errors.Join(server.Kill(), server.Start()))
	var after *purchase.Record
	require.Eventually(t, "the database is back", func() bool {
		after, err = purchase.ByKey(e.DB, "late")
		return err == nil // a connection from before the kill causes an error
	})
	if after == nil || after.WaitedMS != before.WaitedMS || after.LeftAfter != before.LeftAfter {
		t.Errorf("the buyer was told that it is sold; the record was %+v and is %+v", before, after)
	}
}
