package lockstrategytest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
)

// errDead: what a process that has died asks of Redis never arrives.
var errDead = errors.New("the process is dead")

// A body is one process's connections to Redis: it can die, at a command or
// between two.
type body struct {
	dead   atomic.Bool
	before func(ctx context.Context, command string) // may be nil; called at each command's gate
}

// deps are the engine's, with Redis behind the body's gate. The embedded and
// the real Redis are reached by connections of the body's own.
func (w *world) deps(tb testing.TB, b *body) lockstrategy.Deps {
	deps := onengine.Deps(w.engine)
	deps.Settings.Wait = patience
	deps.Settings.LeaseTTL = 2 * time.Minute
	gated := func(c redis.UniversalClient) redis.UniversalClient {
		options := *c.(*redis.Client).Options()
		own := redis.NewClient(&options)
		own.AddHook(b)
		tb.Cleanup(func() { _ = own.Close() })
		return own
	}
	deps.Redis = gated(deps.Redis)
	deps.Redlock = slices.Clone(deps.Redlock)
	for i, node := range deps.Redlock {
		deps.Redlock[i] = gated(node)
	}
	return deps
}

// DialHook is redis.Hook.DialHook.
func (b *body) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook is redis.Hook.ProcessHook.
func (b *body) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if b.before != nil && !b.dead.Load() {
			b.before(ctx, cmd.Name())
		}
		if b.dead.Load() {
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook is redis.Hook.ProcessPipelineHook.
func (b *body) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if b.dead.Load() {
			return errDead
		}
		return next(ctx, cmds)
	}
}

// later is a clock on which every lease of now has run out.
func later() time.Time { return time.Now().Add(time.Hour) }

// expireAll lets the time of every lease run out. What has no TTL stays.
func (w *world) expireAll(tb testing.TB) {
	tb.Helper()
	if !slices.Contains(w.entry.Needs, lockstrategy.NeedsRedis) && !slices.Contains(w.entry.Needs, lockstrategy.NeedsRedlock) {
		if err := w.instance(patience, nil).(purchase.Resetter).Reset(tb.Context(), "apple"); err != nil {
			tb.Fatal(err)
		}
		return
	}
	for _, node := range append([]redis.UniversalClient{w.engine.Redis}, w.engine.Redlock...) {
		keys, err := node.Keys(tb.Context(), "*").Result()
		if err != nil {
			tb.Fatal(err)
		}
		for _, key := range keys {
			if ttl, err := node.PTTL(tb.Context(), key).Result(); err != nil || ttl < 0 {
				continue
			}
			if err := node.PExpire(tb.Context(), key, time.Millisecond).Err(); err != nil {
				tb.Fatal(err)
			}
			for deadline := time.Now().Add(patience); node.Exists(tb.Context(), key).Val() > 0; {
				if time.Now().After(deadline) {
					tb.Fatalf("%s has not expired", key)
				}
			}
		}
	}
}

// onRedis tells whether the lock is a lease in Redis, whose clients the suite
// can put a gate before.
func (w *world) onRedis(shop purchase.Strategy) bool {
	return w.leases(shop) && (w.entry.Needs[0] == lockstrategy.NeedsRedis || w.entry.Needs[0] == lockstrategy.NeedsRedlock)
}

// holderCrash: the holder dies, and what it held is free when its lease has run
// out. A holder that asks for the TTL in a command of its own dies before it.
func holderCrash(tb testing.TB, w *world) {
	if !w.onRedis(w.instance(patience, nil)) {
		return
	}
	w.stock(tb, "apple", 5)
	events := make(chan lockstrategy.Event, 64)
	process := &body{}
	process.before = func(_ context.Context, command string) {
		if command == "expire" || command == "pexpire" { // it has the key, which has no TTL yet
			process.dead.Store(true)
			events <- lockstrategy.Event{Kind: lockstrategy.Acquired, Purchaser: "buyer-1"}
		}
	}
	deps := w.deps(tb, process)
	deps.Observe = func(_ context.Context, e lockstrategy.Event) { events <- e }
	stuck := w.keepRowLocked(tb, "apple")
	ctx, die := context.WithCancel(tb.Context())
	defer die()
	first := make(chan error, 1)
	go func() {
		_, err := w.build(deps).Buy(ctx, order("apple", 1, 1))
		first <- err
	}()
	expect(tb, events, lockstrategy.Acquired, "buyer-1")
	process.dead.Store(true)
	die()
	stuck.release()
	_ = receive(tb, first, "the dead process")
	before := w.books(tb, "apple")

	w.expireAll(tb)
	survivor := w.deps(tb, &body{})
	survivor.Now = later
	if Expected(w.entry)["HolderCrash"] != "" {
		survivor.Settings.Wait = 300 * time.Millisecond // it will not get in, however long it waits
	}
	if _, err := w.build(survivor).Buy(tb.Context(), order("apple", 2, 1)); err != nil {
		tb.Errorf("locked for ever: the next buyer, when all leases have run out: %v", err)
		return
	}
	if books := w.books(tb, "apple"); books.Records != before.Records+1 || books.Drift != 0 {
		tb.Errorf("books %+v", books)
	}
}

// expiredLease: the lease runs out while its holder is inside. Two sell at once,
// unless the late one is refused.
func expiredLease(tb testing.TB, w *world) {
	events := make(chan lockstrategy.Event, 64)
	observe := func(_ context.Context, e lockstrategy.Event) { events <- e }
	first := onengine.Deps(w.engine)
	first.Settings.Wait, first.Settings.LeaseTTL, first.Observe = patience, 2*time.Minute, observe
	shop := w.build(first)
	if !w.leases(shop) || !w.seesVictims() {
		return
	}
	w.stock(tb, "apple", 5)
	stuck := w.keepRowLocked(tb, "apple")
	outcomes := make(chan error, 2)
	buy := func(s purchase.Strategy, buyer int) {
		_, err := s.Buy(tb.Context(), order("apple", buyer, 1))
		outcomes <- err
	}
	go buy(shop, 1)
	expect(tb, events, lockstrategy.Acquired, "buyer-1")
	stuck.waitForVictims(tb, 1) // it has read, and is about to write
	w.expireAll(tb)
	second := first
	second.Now = later
	if !w.entry.Leased {
		stuck.release() // no TTL: nothing runs out, and the second waits for the first
	}
	go buy(w.build(second), 2)
	expect(tb, events, lockstrategy.Acquired, "buyer-2")
	if w.entry.Leased {
		stuck.waitForVictims(tb, 2)
	}
	stuck.release()
	sold := int64(0)
	for range cap(outcomes) {
		err := receive(tb, outcomes, "a holder")
		if err == nil {
			sold++
		} else if !errors.Is(err, purchase.ErrLockLost) {
			tb.Errorf("%v, want a sale or ErrLockLost", err)
		}
	}
	if books := w.books(tb, "apple"); books.Drift != 0 || books.Records != sold || sold == 0 {
		tb.Errorf("two holders: drift %d, %d records, %d told", books.Drift, books.Records, sold)
	}
}

// releaseRace: at the very command that frees the lock, the lock is another's.
func releaseRace(tb testing.TB, w *world) {
	if w.onRedis(w.instance(patience, nil)) {
		untilConclusive(tb, func() bool { return releaseRaceOnce(tb, w) })
	}
}

func releaseRaceOnce(tb testing.TB, w *world) (conclusive bool) {
	w.stock(tb, "apple", 5)
	events := make(chan lockstrategy.Event, 64)
	observe := func(_ context.Context, e lockstrategy.Event) { events <- e }
	var (
		stuck  *stuck
		second = make(chan error, 1)
		raced  atomic.Bool
		armed  atomic.Bool
	)
	process := &body{}
	process.before = func(_ context.Context, command string) {
		frees := command == "del" || command == "eval" || command == "evalsha"
		if !frees || !armed.Load() || raced.Swap(true) {
			return
		}
		if err := w.instance(patience, nil).(purchase.Resetter).Reset(tb.Context(), "apple"); err != nil {
			tb.Error(err)
		}
		stuck = w.keepRowLocked(tb, "apple")
		go func() {
			_, err := w.instance(patience, observe).Buy(tb.Context(), order("apple", 2, 1))
			second <- err
		}()
		expect(tb, events, lockstrategy.Acquired, "buyer-2")
	}
	deps := w.deps(tb, process)
	deps.Observe = func(_ context.Context, e lockstrategy.Event) {
		if e.Kind == lockstrategy.Released {
			armed.Store(true)
		}
	}
	if _, err := w.build(deps).Buy(tb.Context(), order("apple", 1, 1)); err != nil {
		tb.Fatalf("the first holder: %v", err)
	}
	if !raced.Load() {
		tb.Fatal("the release was not seen: this test has shown nothing")
	}
	return w.thirdStaysOut(tb, stuck, events, observe, second)
}

// keepsStock tells whether the strategy keeps a copy of the stock in Redis.
func (w *world) keepsStock() bool {
	_, keeps := w.instance(patience, nil).(purchase.StockKeeper)
	return keeps
}

// stockCrash: a buyer dies after it was admitted. Its unit is sold, or can be.
func stockCrash(tb testing.TB, w *world) {
	if !w.keepsStock() {
		return
	}
	w.stock(tb, "apple", 1)
	process := &body{}
	admitted := make(chan struct{}, 64)
	deps := w.deps(tb, process)
	deps.Observe = func(context.Context, lockstrategy.Event) { admitted <- struct{}{} }
	process.before = func(_ context.Context, command string) {
		if command == "incrby" { // what the dying would still put back
			process.dead.Store(true)
		}
	}
	stuck := w.keepRowLocked(tb, "apple")
	ctx, die := context.WithCancel(tb.Context())
	defer die()
	first := make(chan error, 1)
	go func() {
		_, err := w.build(deps).Buy(ctx, order("apple", 1, 1))
		first <- err
	}()
	for deadline := time.Now().Add(patience); w.inRedis(tb) != "0"; {
		if time.Now().After(deadline) {
			tb.Fatal("nobody was admitted")
		}
	}
	process.dead.Store(true)
	die()
	stuck.release()
	_ = receive(tb, first, "the dead process")

	_, err := w.instance(patience, nil).Buy(tb.Context(), order("apple", 2, 1))
	w.settle(tb, "apple")
	books := w.books(tb, "apple")
	if books.Leftover > 0 && errors.Is(err, purchase.ErrSoldOut) {
		tb.Errorf("%d left that nobody can buy", books.Leftover)
	}
	if books.Drift != 0 || books.Oversold != 0 {
		tb.Errorf("books %+v", books)
	}
}

// inRedis is the stock that Redis has of apples.
func (w *world) inRedis(tb testing.TB) string {
	tb.Helper()
	stock, err := w.engine.Redis.Get(tb.Context(), "shop:stock:"+w.entry.Name+":{apple}").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return stock
}

// stockForgotten: Redis forgets while a buyer is between admission and write.
func stockForgotten(tb testing.TB, w *world) {
	if !w.keepsStock() || !w.seesVictims() {
		return
	}
	w.stock(tb, "apple", 1)
	stuck := w.keepRowLocked(tb, "apple")
	outcomes := make(chan error, 2)
	buy := func(buyer int) {
		_, err := w.instance(patience, nil).Buy(tb.Context(), order("apple", buyer, 1))
		outcomes <- err
	}
	go buy(1)
	stuck.waitForVictims(tb, 1)
	if err := w.engine.Redis.FlushDB(tb.Context()).Err(); err != nil {
		tb.Fatal(err)
	}
	go buy(2)
	stuck.waitForVictims(tb, 2)
	stuck.release()
	sold := 0
	for range cap(outcomes) {
		err := receive(tb, outcomes, "a buyer")
		if err == nil {
			sold++
		} else if !errors.Is(err, purchase.ErrSoldOut) && !errors.Is(err, purchase.ErrUnknownOutcome) {
			tb.Error(err)
		}
	}
	w.settle(tb, "apple")
	if books := w.books(tb, "apple"); books.Oversold != 0 || books.Drift != 0 || books.Records < int64(sold) {
		tb.Errorf("sold twice: books %+v, %d told", books, sold)
	}
}
