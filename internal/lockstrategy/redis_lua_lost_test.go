package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/purchase"
)

// lossy loses one run of a script, or one other command: either the command or its answer.
type lossy struct {
	command string // name, or hash of a script
	done    bool   // whether the command is executed and only the answer is lost
	before  func()
	lost    atomic.Bool
}

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		hit := cmd.Name() == l.command || len(cmd.Args()) > 1 && cmd.Args()[1] == l.command
		if !hit || l.lost.Swap(true) {
			return next(ctx, cmd)
		}
		if l.before != nil {
			l.before()
			return next(ctx, cmd)
		}
		if l.done {
			_ = next(ctx, cmd)
		}
		cmd.SetErr(io.EOF)
		return io.EOF
	}
}

// lossyShop returns a shop with Redis connections of its own.
func lossyShop(t *testing.T, e *engine.Engine, l *lossy) *RedisLua {
	t.Helper()
	options := *e.Redis.(*redis.Client).Options()
	own := redis.NewClient(&options)
	t.Cleanup(func() { _ = own.Close() })
	own.AddHook(l)
	settings := DefaultSettings()
	settings.Wait = longWait
	shop := NewRedisLua(Deps{DB: e.DB, Redis: own, Settings: settings, Now: time.Now})
	for _, script := range []*redis.Script{shop.admit, shop.load, settle} { // so that each script is called by its hash
		if err := script.Load(t.Context(), e.Redis).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return shop
}

// TestRedisLuaLostCommand: whichever command or answer is lost, a buyer that asks again has one
// sale. A refused buyer keeps no unit.
func TestRedisLuaLostCommand(t *testing.T) {
	e := enginetest.Local(t)
	scripts := newRedisLua(e, longWait)
	for name, command := range map[string]string{
		"admit": scripts.admit.Hash(), "load": scripts.load.Hash(), "settle": settle.Hash(), "xrange": "xrange",
	} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s done %t", name, done), func(t *testing.T) {
				restock(t, e, "apple", 5)
				l := &lossy{command: command, done: done}
				shop := purchase.NewIdempotent(lossyShop(t, e, l), e.DB)
				answered := newAnswers()
				o := apple("ann", 1)
				o.IdempotencyKey = fmt.Sprintf("key %s %t", name, done)
				if err := answered.buy(t.Context(), shop, o); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the loss", l.lost.Load) // a buyer gets its answer before its entry is removed
				answered.check(t, e, 4)
				mustHaveStock(t, e, 4)

				// The database has one unit, but Redis has four.
				if err := e.DB.Exec("UPDATE product SET amount = 1, stocked = 2 WHERE name = 'apple'").Error; err != nil {
					t.Fatal(err)
				}
				l.lost.Store(false)
				bob := apple("bob", 3)
				bob.IdempotencyKey = o.IdempotencyKey + " bob"
				if err := answered.buy(t.Context(), shop, bob); !errors.Is(err, purchase.ErrSoldOut) {
					t.Fatalf("%v, want sold out", err)
				}
				answered.check(t, e, 1)
				mustHaveStock(t, e, 1)
			})
		}
	}
}

// TestRedisLuaRefusedOnce: the units of a refused order are returned once, even if several movers
// decide on it and settle it.
func TestRedisLuaRefusedOnce(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	shop := newRedisLua(e, longWait)
	if _, err := shop.enter(t.Context(), apple("ann", 3), time.Now()); err != nil {
		t.Fatal(err)
	}
	other := NewConditional(Deps{DB: e.DB, Settings: DefaultSettings(), Now: time.Now})
	if _, err := other.Buy(t.Context(), apple("bob", 4)); err != nil {
		t.Fatal(err)
	}
	entries := e.Redis.XRange(t.Context(), luaKeys.Stream("apple"), "-", "+").Val()
	if len(entries) != 1 {
		t.Fatalf("%d entries", len(entries))
	}
	for range 2 { // a mover that decides and crashes, and another that finds the entry again
		mover := lossyShop(t, e, &lossy{command: settle.Hash()})
		if err := mover.Drain(t.Context(), "apple"); !errors.Is(err, io.EOF) {
			t.Fatalf("%v, want that settling is cut off", err)
		}
	}
	for range 2 {
		err := settle.Run(t.Context(), e.Redis, luaKeys.All("apple"), "apple", entries[0].ID, entries[0].Values["key"], 3).Err()
		if err != nil {
			t.Fatal(err)
		}
		mustHaveStock(t, e, 1)
	}
	if _, err := shop.Buy(t.Context(), apple("cec", 1)); err != nil {
		t.Errorf("the last unit: %v", err)
	}
	if _, err := shop.Buy(t.Context(), apple("dan", 1)); !errors.Is(err, purchase.ErrSoldOut) {
		t.Errorf("%v, want sold out", err)
	}
	newAnswers().check(t, e, 0)
}

// TestRedisLuaProductsKept: an order arrives just after a worker has seen the last one leave. The
// next worker finds it.
func TestRedisLuaProductsKept(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	l := &lossy{}
	shop := lossyShop(t, e, l)
	l.command = settle.Hash()
	l.before = func() {
		if _, err := newRedisLua(e, longWait).enter(t.Context(), apple("ann", 1), time.Now()); err != nil {
			t.Error(err)
		}
	}
	if err := shop.Drain(t.Context(), "apple"); err != nil {
		t.Fatal(err)
	}
	if known := e.Redis.SIsMember(t.Context(), luaKeys.Products("apple"), "apple").Val(); !known || !l.lost.Load() {
		t.Errorf("the product is known: %t; the order came: %t", known, l.lost.Load())
	}
	newAnswers().check(t, e, 4)
	if known := e.Redis.SIsMember(t.Context(), luaKeys.Products("apple"), "apple").Val(); known {
		t.Error("the product is kept though it has no orders")
	}
}
