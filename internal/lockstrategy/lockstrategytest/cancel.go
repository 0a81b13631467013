package lockstrategytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// waitBound checks that a buyer that cannot proceed is answered before its time limit ends, and buys nothing.
func waitBound(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	bound := 200 * time.Millisecond
	if w.entry.WritesLater {
		bound = 2 * time.Second // long enough for a slow machine to admit both buyers
	}
	shop := w.instance(bound, nil)
	outcomes := make(chan error, 2)
	before := int64(0)
	if w.entry.WritesLater { // the first buyer brings the stock to Redis, so the database is not needed to admit the others
		require.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", cap(outcomes), 1))))
		before = 1
	}
	stuck := w.keepRowLocked(tb, "apple")
	start := time.Now()
	for i := range cap(outcomes) {
		go func() {
			_, err := shop.Buy(tb.Context(), order("apple", i, 1))
			outcomes <- err
		}()
	}
	gaveUp := purchase.ErrBusy
	if w.entry.WritesLater {
		gaveUp = purchase.ErrUnknownOutcome
	}
	sold := int64(0)
	for i := range cap(outcomes) {
		err := receive(tb, outcomes, "a buyer that gives up")
		switch {
		case i == 1 && err == nil && !w.seesVictims():
			sold++
		case !errors.Is(err, gaveUp):
			tb.Errorf("%v, want %v", err, gaveUp)
		}
		// The database's own lock timeout is one second longer than enginetest.Wait.
		if took := time.Since(start); took >= enginetest.Wait {
			tb.Errorf("answered after %s; the wait bound is %s, and this was the database's", took, bound)
		}
		if !w.seesVictims() {
			stuck.release() // SQLite's busy handler ignores the context of the buyer inside
		}
	}
	stuck.release()
	w.settle(tb, "apple")
	if w.entry.WritesLater {
		sold = 2
	}
	w.mustHaveRecords(tb, "apple", before+sold)
}

// cancelWhileWaiting checks that a buyer that disconnects in the queue buys nothing and does not block the
// buyers behind it. If the strategy writes admitted orders later (Traits.WritesLater), such an order is
// still sold, and its buyer gets the answer "unknown".
func cancelWhileWaiting(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := newEvents()
	shop := w.instance(stepTimeout, events.observe)
	stuck := w.keepRowLocked(tb, "apple")
	ahead := buyLater(tb.Context(), shop, 1)
	awaitInside(tb, w, events, stuck)
	ctx, hangUp := context.WithCancel(tb.Context())
	behind := buyLater(ctx, shop, 2)
	if w.entry.WaitsFor == lockstrategy.WaitRow {
		stuck.waitForVictims(tb, 2)
	} else {
		events.expect(tb, lockstrategy.Waiting, "buyer-2") // buyer-2 is admitted, if the strategy admits orders
	}
	hangUp()
	mustHaveHungUp(tb, w, receive(tb, behind, "the buyer that hung up"))
	stuck.release()
	expect.NoError(tb, receive(tb, ahead, "the buyer ahead"), "the buyer ahead")
	expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 3, 1))), "the next buyer")
	w.mustHaveRecords(tb, "apple", 2+admitted(w))
}

// cancelWhileHolding checks that a buyer that disconnects inside the critical section buys nothing and
// gives the lock back at once, not after the TTL.
//
// The test locks the row until the buyer has disconnected, so the buyer's context ends before it can write.
// MySQL's driver notices the end, and the buyer returns while the row is still locked. SQLite's busy
// handler does not notice it: the buyer returns when it gets the file's lock, and then must not commit.
func cancelWhileHolding(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := newEvents()
	shop := w.instance(stepTimeout, events.observe)
	stuck := w.keepRowLocked(tb, "apple")
	ctx, hangUp := context.WithCancel(tb.Context())
	inside := buyLater(ctx, shop, 1)
	awaitInside(tb, w, events, stuck)
	hangUp()
	if !w.seesVictims() && !w.entry.WritesLater {
		stuck.release()
	}
	mustHaveHungUp(tb, w, receive(tb, inside, "the buyer that hung up"))
	stuck.release()
	expect.NoError(tb, expect.ErrorOf(shop.Buy(tb.Context(), order("apple", 2, 1))), "the next buyer")
	w.mustHaveRecords(tb, "apple", 1+admitted(w))
}

// awaitInside waits for the lock event of buyer-1 and, on a database that shows waiting statements,
// until buyer-1 waits for the locked row.
func awaitInside(tb testing.TB, w *world, events *events, stuck *stuck) {
	tb.Helper()
	switch w.entry.WaitsFor {
	case lockstrategy.WaitLock:
		events.expect(tb, lockstrategy.Acquired, "buyer-1")
	case lockstrategy.WaitWorker:
		events.expect(tb, lockstrategy.Waiting, "buyer-1")
	}
	stuck.waitForVictims(tb, 1)
}

// mustHaveHungUp fails unless err is the answer for a buyer that disconnected before its sale was written.
func mustHaveHungUp(tb testing.TB, w *world, err error) {
	tb.Helper()
	expect.ErrorIs(tb, err, context.Canceled, "hung up")
	expect.Equal(tb, errors.Is(err, purchase.ErrUnknownOutcome), w.entry.WritesLater, "hung up:", err, "is unknown, which is right only where an admitted order is written later")
}

// admitted returns how many sales a buyer has that disconnected after its order was admitted: 1 if the
// strategy writes orders later, else 0.
func admitted(w *world) int64 {
	if w.entry.WritesLater {
		return 1
	}
	return 0
}
