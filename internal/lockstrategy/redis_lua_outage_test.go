package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// openOn opens an engine on servers that already run.
func openOn(t *testing.T, db, redis string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{DB: db, Redis: redis, Wait: enginetest.Wait, Conns: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestRedisLuaNotOnDisk: InnoDB shows a commit to others before it has flushed it. If another
// process has written a buyer's order, the buyer is answered only when the record survives a crash
// of the database.
func TestRedisLuaNotOnDisk(t *testing.T) {
	server := localservertest.MySQL(t)
	e := openOn(t, server.URL(), enginetest.Local(t).URLs.Redis)
	restock(t, e, "apple", 10)
	// These settings keep the mover's COMMIT off the disk.
	for _, set := range []string{"innodb_flush_log_at_timeout = 2700", "innodb_flush_log_at_trx_commit = 0"} {
		if err := e.DB.Exec("SET GLOBAL " + set).Error; err != nil {
			t.Fatal(err)
		}
	}
	here, elsewhere := newRedisLua(e, longWait), newRedisLua(e, longWait)
	o := apple("late", 1)
	o.IdempotencyKey = "late"
	entry, err := here.enter(t.Context(), o, time.Now())
	if err == nil {
		err = elsewhere.Drain(t.Context(), "apple")
	}
	if err == nil {
		err = e.DB.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1").Error
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := <-here.Await(o, entry).Answer; a.Err != nil {
		t.Fatal(a.Err)
	}
	if err := errors.Join(server.Kill(), server.Start()); err != nil {
		t.Fatal(err)
	}
	var records int64
	eventually(t, "the database is back", func() bool {
		return e.DB.Model(&purchase.Record{}).Where("idempotency_key = ?", "late").Count(&records).Error == nil
	})
	if records != 1 {
		t.Errorf("the buyer was answered sold, and there are %d records", records)
	}
}

// TestRedisLuaCrash: a shop admits orders and crashes before it writes them. The workers of two other
// shops write each order once.
func TestRedisLuaCrash(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 100)
	crashed := newRedisLua(e, longWait)
	for i := range 16 {
		o := apple(fmt.Sprint("buyer-", i), 1)
		o.IdempotencyKey = "key of " + o.Purchaser
		if _, err := crashed.enter(t.Context(), o, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { newRedisLua(e, longWait).Work(ctx) })
	}
	eventually(t, "an empty stream", func() bool {
		return e.Redis.XLen(ctx, luaKeys.Stream("apple")).Val() == 0 && e.Redis.SCard(ctx, luaKeys.Products("apple")).Val() == 0
	})
	stop()
	workers.Wait()
	newAnswers().check(t, e, 100-16)
	mustHaveStock(t, e, 100-16)
}
