package lockstrategytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// stockCrash lets a buyer crash after the strategy has admitted it in Redis. Its unit must be sold, or
// another buyer must be able to buy it.
func stockCrash(tb testing.TB, w *world) {
	w.stock(tb, "apple", 1)
	dying := &process{}
	dying.before = func(_ context.Context, command string) {
		if command == "incrby" { // the dying process must not return its units
			dying.dead.Store(true)
		}
	}
	stuck := w.keepRowLocked(tb, "apple")
	ctx, die := context.WithCancel(tb.Context())
	defer die()
	first := buyLater(ctx, w.build(w.deps(tb, dying)), 1)
	for deadline := time.Now().Add(stepTimeout); inRedis(tb, w) != "0"; {
		if time.Now().After(deadline) {
			tb.Fatal("no buyer was admitted")
		}
	}
	dying.dead.Store(true)
	die()
	stuck.release()
	_ = receive(tb, first, "the dead process")

	_, err := w.instance(stepTimeout, nil).Buy(tb.Context(), order("apple", 2, 1))
	w.settle(tb, "apple")
	got := w.audited(tb, "apple")
	if got.Leftover > 0 && errors.Is(err, purchase.ErrSoldOut) {
		tb.Errorf("%d left that no buyer can buy", got.Leftover)
	}
	if got.Drift != 0 || got.Oversold != 0 {
		tb.Errorf("stock and records %+v", got)
	}
}

func inRedis(tb testing.TB, w *world) string {
	tb.Helper()
	var stock string
	err := topology.EachPrimary(tb.Context(), w.engine.Redis, func(node redis.UniversalClient) error {
		keys, err := node.Keys(tb.Context(), "shop:stock:"+w.entry.Name+":*apple*").Result()
		if err == nil && len(keys) > 0 {
			stock, err = node.Get(tb.Context(), keys[0]).Result()
		}
		return err
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return stock
}

// stockForgotten makes Redis lose its data after a buyer was admitted there and before its sale is written.
func stockForgotten(tb testing.TB, w *world) {
	w.stock(tb, "apple", 1)
	stuck := w.keepRowLocked(tb, "apple")
	first := buyLater(tb.Context(), w.instance(stepTimeout, nil), 1)
	stuck.waitForVictims(tb, 1)
	flush := func(node redis.UniversalClient) error { return node.FlushDB(tb.Context()).Err() }
	require.NoError(tb, topology.EachPrimary(tb.Context(), w.engine.Redis, flush))
	second := buyLater(tb.Context(), w.instance(stepTimeout, nil), 2)
	stuck.waitForVictims(tb, 2)
	stuck.release()
	sold := 0
	for _, answer := range []<-chan error{first, second} {
		err := receive(tb, answer, "a buyer")
		if err == nil {
			sold++
		} else if !errors.Is(err, purchase.ErrSoldOut) && !errors.Is(err, purchase.ErrUnknownOutcome) {
			tb.Error(err)
		}
	}
	w.settle(tb, "apple")
	if got := w.audited(tb, "apple"); got.Oversold != 0 || got.Drift != 0 || got.Records < int64(sold) {
		tb.Errorf("sold twice: stock and records %+v, %d answered sold", got, sold)
	}
}
