package lockstrategy

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

type keyRecorder struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (k *keyRecorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (k *keyRecorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			k.note(cmd)
		}
		return next(ctx, cmds)
	}
}

func (k *keyRecorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		k.note(cmd)
		return next(ctx, cmd)
	}
}

func (k *keyRecorder) note(cmd redis.Cmder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, arg := range cmd.Args() {
		if text, ok := arg.(string); ok && (strings.HasPrefix(text, "shop:") || strings.HasPrefix(text, "redisson_")) {
			k.keys[text] = true
		}
	}
}

// planted is a strategy on Redis, and the keys that one sale of an apple uses.
type planted struct {
	Entry
	shop purchase.Strategy
	keys []string
}

// plantedIn builds all strategies that use Redis, each with the keys that it was seen to use.
func plantedIn(f *testing.F, e *engine.Engine) (all []planted) {
	f.Helper()
	seen := &keyRecorder{}
	nodes := append([]redis.UniversalClient{e.Redis}, e.Redlock...)
	for _, node := range nodes {
		node.AddHook(seen)
	}
	settings := DefaultSettings()
	settings.Wait, settings.LeaseTTL = time.Minute, time.Second
	for _, entry := range All() {
		if !slices.Contains(entry.Needs, NeedsRedis) && !slices.Contains(entry.Needs, NeedsRedlock) {
			continue
		}
		deps := Deps{DB: e.DB, Redis: e.Redis, Redlock: e.Redlock, Lacks: e.Lacks, Settings: settings, Now: time.Now}
		if entry.Missing(deps) != "" {
			continue
		}
		seen.keys = map[string]bool{}
		plantStock(f, e)
		seller := entry.New(deps)
		require.NoError(f, expect.ErrorOf(seller.Buy(f.Context(), apple("ann", 1))), entry.Name)
		closeShop(seller)
		deps.Settings.Wait = 20 * time.Millisecond // so that a buyer that finds a planted lock soon gives up
		p := planted{Entry: entry, shop: entry.New(deps)}
		f.Cleanup(func() { closeShop(p.shop) })
		seen.mu.Lock()
		p.keys = slices.Sorted(maps.Keys(seen.keys))
		seen.mu.Unlock()
		if len(p.keys) == 0 {
			f.Fatalf("%s names no key in Redis", entry.Name)
		}
		all = append(all, p)
	}
	return all
}

func closeShop(shop purchase.Strategy) {
	if c, ok := shop.(io.Closer); ok {
		_ = c.Close()
	}
}

func plantStock(tb testing.TB, e *engine.Engine) {
	tb.Helper()
	for _, node := range append([]redis.UniversalClient{e.Redis}, e.Redlock...) {
		require.NoError(tb, node.FlushAll(context.Background()).Err())
	}
	err := purchase.InLockingTx(context.Background(), e.DB, func(tx *gorm.DB) error {
		return errors.Join(product.Put(tx, "apple", 20), purchase.Clear(tx, "apple"),
			tx.Exec("UPDATE product SET last_entry = '0-0' WHERE name = 'apple'").Error)
	})
	require.NoError(tb, err)
}

// plant sets a key to a value of one of Redis's types. If Redis refuses it, the key stays unset.
func plant(ctx context.Context, node redis.UniversalClient, key string, how uint8, field, value string, ttl int64) {
	switch how % 7 {
	case 0:
		_ = node.Set(ctx, key, value, 0).Err()
	case 1:
		_ = node.HSet(ctx, key, field, value).Err()
	case 2:
		_ = node.RPush(ctx, key, value, field).Err()
	case 3:
		_ = node.Do(ctx, "ZADD", key, value, field).Err()
	case 4:
		_ = node.SAdd(ctx, key, value, field).Err()
	case 5:
		_ = node.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"units", value, "key", field, "purchaser", "eve", "called", "0"}}).Err()
	case 6:
		_ = node.XAdd(ctx, &redis.XAddArgs{Stream: key, ID: field, Values: []string{"units", value, "key", "k", "purchaser", value, "called", value}}).Err()
	}
	if ttl > 0 {
		_ = node.Do(ctx, "PEXPIRE", key, ttl).Err()
	}
}

// FuzzRedisValues plants any values under the keys of a strategy. A sale must end in one of the
// outcomes without a 500, and stock and records must agree. Only a strategy that trusts a stock in
// Redis may oversell.
func FuzzRedisValues(f *testing.F) {
	e, err := engine.Open(f.Context(), engine.Config{Name: engine.Embedded, Wait: time.Second, Conns: 16})
	require.NoError(f, err)
	f.Cleanup(func() { _ = e.Close() })
	all := plantedIn(f, e)
	for strategy, p := range all {
		for key := range p.keys {
			how := uint8(strategy+key) % 7
			f.Add(uint8(strategy), uint8(key), how, "1-1", "-5", int64(0))
		}
		f.Add(uint8(strategy), uint8(0), uint8(0), "", "9223372036854775807", int64(1))
	}
	f.Fuzz(func(t *testing.T, strategy, key, how uint8, field, value string, ttl int64) {
		p := all[int(strategy)%len(all)]
		plantStock(t, e)
		for _, node := range append([]redis.UniversalClient{e.Redis}, e.Redlock...) {
			plant(t.Context(), node, p.keys[int(key)%len(p.keys)], how, field, value, ttl)
		}
		_, err := p.shop.Buy(t.Context(), apple("ann", 2))
		outcome := purchase.OutcomeOf(err)
		var down *purchase.Unavailable
		if !slices.Contains(purchase.Outcomes(), outcome) || outcome == purchase.Failed && !errors.As(err, &down) {
			t.Errorf("%s: %s: %v", p.Name, outcome, err)
		}
		if movers, ok := p.shop.(interface {
			Forget(ctx context.Context, product string) error
		}); ok { // Forget waits for the writes under way
			require.NoError(t, movers.Forget(t.Context(), "apple"))
		}
		books, err := audit.Read(t.Context(), e.DB, "apple")
		require.NoError(t, err)
		_, copies := p.shop.(purchase.StockKeeper)
		believes := copies && p.Promise[promise.RedisRestart] == verdict.Oversold
		if books.Drift != 0 || !believes && (books.Oversold != 0 || books.Leftover < 0 || books.Leftover > books.Stocked) {
			t.Errorf("%s: stock and records %+v after %s", p.Name, books, outcome)
		}
	})
}
