package lockstrategytest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// later is a clock on which every current lease has expired.
func later() time.Time { return time.Now().Add(time.Hour) }

// expireAll makes every lease expire. A lock without a TTL remains.
func expireAll(tb testing.TB, w *world) {
	tb.Helper()
	if !w.onRedis() {
		forget(tb, w)
		return
	}
	for _, server := range append([]redis.UniversalClient{w.engine.Redis}, w.engine.Redlock...) {
		err := topology.EachPrimary(tb.Context(), server, func(node redis.UniversalClient) error { return expireAllOf(tb, node) })
		require.NoError(tb, err)
	}
}

func expireAllOf(tb testing.TB, node redis.UniversalClient) error {
	keys, err := node.Keys(tb.Context(), "*").Result()
	if err != nil {
		return err
	}
	for _, key := range keys {
		if ttl, err := node.PTTL(tb.Context(), key).Result(); err != nil || ttl < 0 {
			continue
		}
		if err := node.PExpire(tb.Context(), key, time.Millisecond).Err(); err != nil {
			return err
		}
		for deadline := time.Now().Add(stepTimeout); node.Exists(tb.Context(), key).Val() > 0; {
			if time.Now().After(deadline) {
				return fmt.Errorf("%s has not expired", key)
			}
		}
	}
	return nil
}

// forget makes the lock's server lose the lock on the product "apple".
func forget(tb testing.TB, w *world) {
	tb.Helper()
	expect.NoError(tb, w.instance(stepTimeout, nil).(purchase.Resetter).Reset(tb.Context(), "apple"))
}

// holderCrash checks that after the holder crashes, its lock is free once the lease has expired. If the
// strategy sets the TTL with a second command, the test crashes the holder before that command.
func holderCrash(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := newEvents()
	dying := &process{}
	dying.before = func(_ context.Context, command string) {
		if command == "expire" || command == "pexpire" { // the process has the key, which has no TTL yet
			dying.dead.Store(true)
			events.seen <- lockstrategy.Event{Kind: lockstrategy.Acquired, Purchaser: "buyer-1"}
		}
	}
	letGo := events.hold(tb, "buyer-1")
	d := w.deps(tb, dying)
	d.Observe = events.observe
	ctx, die := context.WithCancel(tb.Context())
	defer die()
	first := buyLater(ctx, w.build(d), 1)
	events.expect(tb, lockstrategy.Acquired, "buyer-1")
	dying.dead.Store(true)
	die()
	letGo()
	_ = receive(tb, first, "the dead process")
	w.mustHaveRecords(tb, "apple", 0)

	expireAll(tb, w)
	survivor := w.deps(tb, &process{})
	survivor.Now = later
	if w.entry.CaughtBy["HolderCrash"] != "" {
		survivor.Settings.Wait = 300 * time.Millisecond // this buyer will never get the lock
	}
	if _, err := w.build(survivor).Buy(tb.Context(), order("apple", 2, 1)); err != nil {
		tb.Errorf("locked forever: the next buyer, after all leases have expired: %v", err)
		return
	}
	w.mustHaveRecords(tb, "apple", 1)
}

// expiredLease makes the lease expire while its holder is in the critical section. Both buyers could then
// buy the same unit, unless the strategy refuses the late one.
func expiredLease(tb testing.TB, w *world) {
	events := newEvents()
	d := onengine.Deps(w.engine)
	d.Settings.Wait, d.Settings.LeaseTTL, d.Observe = stepTimeout, longLease, events.observe
	w.stock(tb, "apple", 5)
	stuck := w.keepRowLocked(tb, "apple")
	first := buyLater(tb.Context(), w.build(d), 1)
	events.expect(tb, lockstrategy.Acquired, "buyer-1")
	stuck.waitForVictims(tb, 1) // the first buyer has read the stock and is about to write
	expireAll(tb, w)
	d.Now = later
	if !w.entry.Leased {
		stuck.release() // nothing expires: the second buyer waits for the first
	}
	second := buyLater(tb.Context(), w.build(d), 2)
	events.expect(tb, lockstrategy.Acquired, "buyer-2")
	if w.entry.Leased {
		stuck.waitForVictims(tb, 2)
	}
	stuck.release()
	sold := int64(0)
	for _, answer := range []<-chan error{first, second} {
		err := receive(tb, answer, "a holder")
		if err == nil {
			sold++
		} else if !errors.Is(err, purchase.ErrLockLost) {
			tb.Errorf("%v, want a sale or ErrLockLost", err)
		}
	}
	if got := w.audited(tb, "apple"); got.Drift != 0 || got.Records != sold || sold == 0 {
		tb.Errorf("two holders: drift %d, %d records, %d answered sold", got.Drift, got.Records, sold)
	}
}

// lostLease makes the lock's server lose the lock, so a second buyer enters while the first is in the critical
// section. The first buyer's release must not free the second buyer's lock, and must notice the loss.
func lostLease(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := newEvents()
	letFirstGo, letSecondGo := events.hold(tb, "buyer-1"), events.hold(tb, "buyer-2")
	ctx, hangUp := context.WithCancel(tb.Context())
	defer hangUp()
	first := buyLater(ctx, w.instance(stepTimeout, events.observe), 1)
	events.expect(tb, lockstrategy.Acquired, "buyer-1")
	forget(tb, w)
	second := buyLater(tb.Context(), w.instance(stepTimeout, events.observe), 2)
	events.expect(tb, lockstrategy.Acquired, "buyer-2") // two holders, as the catalogue warns
	hangUp()
	letFirstGo()
	if err := receive(tb, first, "the first holder"); err == nil {
		tb.Error("the first holder was sold to after it had hung up")
	}
	if !events.had(lockstrategy.Lost) {
		tb.Error("the first holder's loss was not noticed at its release")
	}
	thirdStaysOut(tb, w, events, letSecondGo, second)
}

// releaseRace lets another holder take the lock just before the first holder's command that frees it.
func releaseRace(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := newEvents()
	letSecondGo := events.hold(tb, "buyer-2")
	var (
		second <-chan error
		raced  atomic.Bool
		armed  atomic.Bool
	)
	releasing := &process{}
	releasing.before = func(_ context.Context, command string) {
		frees := command == "del" || command == "eval" || command == "evalsha"
		if !frees || !armed.Load() || raced.Swap(true) {
			return
		}
		forget(tb, w)
		second = buyLater(tb.Context(), w.instance(stepTimeout, events.observe), 2)
		events.expect(tb, lockstrategy.Acquired, "buyer-2")
	}
	d := w.deps(tb, releasing)
	d.Observe = func(_ context.Context, e lockstrategy.Event) {
		if e.Kind == lockstrategy.Released {
			armed.Store(true)
		}
	}
	require.NoError(tb, expect.ErrorOf(w.build(d).Buy(tb.Context(), order("apple", 1, 1))), "the first holder")
	if !raced.Load() {
		tb.Fatal("the release was not seen: this test has shown nothing")
	}
	thirdStaysOut(tb, w, events, letSecondGo, second)
}

// thirdStaysOut fails if a third buyer enters while the test stops the second buyer, which has the lock.
func thirdStaysOut(tb testing.TB, w *world, events *events, letSecondGo func(), second <-chan error) {
	tb.Helper()
	ctx, goHome := context.WithCancel(tb.Context())
	defer goHome()
	letThirdGo := events.hold(tb, "buyer-3") // otherwise buyer-3 could have sold before the test reads its event
	third := buyLater(ctx, w.instance(300*time.Millisecond, events.observe), 3)
	if events.cameIn(tb, third) {
		tb.Error("the first one's release freed the second one's lock")
		goHome()
		letThirdGo()
		_ = receive(tb, third, "the third buyer")
	}
	letSecondGo()
	expect.NoError(tb, receive(tb, second, "the second holder"), "the second holder")
}
