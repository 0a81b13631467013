package lockstrategytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// waitBound: a buyer that cannot get on is answered in bounded time, and nothing
// was sold to it.
func waitBound(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	bound := 200 * time.Millisecond
	if w.entry.WritesLater {
		bound = 2 * time.Second // so that a starved machine admits both before they give up
	}
	shop := w.instance(bound, nil)
	outcomes := make(chan error, 2)
	before := int64(0)
	if w.entry.WritesLater { // one that brings the stock to Redis: to admit the others it needs no database
		if _, err := shop.Buy(tb.Context(), order("apple", cap(outcomes), 1)); err != nil {
			tb.Fatal(err)
		}
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
		// The database gives up a row by itself after enginetest.Wait and a second.
		if took := time.Since(start); took >= enginetest.Wait {
			tb.Errorf("answered after %s; the wait bound is %s, and this was the database's", took, bound)
		}
		if !w.seesVictims() {
			stuck.release() // SQLite's busy handler does not hear of a context, for the buyer inside
		}
	}
	stuck.release()
	w.settle(tb, "apple")
	if w.entry.WritesLater {
		sold = 2
	}
	w.mustHaveRecords(tb, "apple", before+sold)
}

// cancelWhileWaiting: a buyer that hangs up in the line is sold nothing and leaves no
// gap in it. An order that was admitted before is sold all the same where
// Traits.WritesLater says so, and its buyer is answered unknown.
func cancelWhileWaiting(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := newEvents()
	shop := w.instance(stepTimeout, events.observe)
	stuck := w.keepRowLocked(tb, "apple")
	ahead := buyLater(tb.Context(), shop, 1)
	comesInside(tb, w, events, stuck)
	ctx, hangUp := context.WithCancel(tb.Context())
	behind := buyLater(ctx, shop, 2)
	if w.entry.WaitsFor == lockstrategy.TheRow {
		stuck.waitForVictims(tb, 2)
	} else {
		events.expect(tb, lockstrategy.Waiting, "buyer-2") // it is admitted, if it is one to be admitted
	}
	hangUp()
	mustHaveHungUp(tb, w, receive(tb, behind, "the buyer that hung up"))
	stuck.release()
	if err := receive(tb, ahead, "the buyer ahead"); err != nil {
		tb.Errorf("the buyer ahead: %v", err)
	}
	if _, err := shop.Buy(tb.Context(), order("apple", 3, 1)); err != nil {
		tb.Errorf("the next buyer: %v", err)
	}
	w.mustHaveRecords(tb, "apple", 2+admitted(w))
}

// cancelWhileHolding: a buyer that hangs up inside the section is sold nothing, and
// gives the lock back at once, not after the TTL.
//
// The row is locked until the buyer has hung up, so its context has ended before its
// write can be made. MySQL's driver hears of that, and the buyer comes back while the
// row is still locked. SQLite's busy handler does not: the buyer comes back when it
// has the file, and then must not commit.
func cancelWhileHolding(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := newEvents()
	shop := w.instance(stepTimeout, events.observe)
	stuck := w.keepRowLocked(tb, "apple")
	ctx, hangUp := context.WithCancel(tb.Context())
	inside := buyLater(ctx, shop, 1)
	comesInside(tb, w, events, stuck)
	hangUp()
	if !w.seesVictims() && !w.entry.WritesLater {
		stuck.release()
	}
	mustHaveHungUp(tb, w, receive(tb, inside, "the buyer that hung up"))
	stuck.release()
	if _, err := shop.Buy(tb.Context(), order("apple", 2, 1)); err != nil {
		tb.Errorf("the next buyer: %v", err)
	}
	w.mustHaveRecords(tb, "apple", 1+admitted(w))
}

// comesInside returns when buyer-1 has its turn, and on a database that shows it is in
// front of the locked row.
func comesInside(tb testing.TB, w *world, events *events, stuck *stuck) {
	tb.Helper()
	switch w.entry.WaitsFor {
	case lockstrategy.ALock:
		events.expect(tb, lockstrategy.Acquired, "buyer-1")
	case lockstrategy.AWorker:
		events.expect(tb, lockstrategy.Waiting, "buyer-1")
	}
	stuck.waitForVictims(tb, 1)
}

// mustHaveHungUp fails unless err is the answer to a buyer that hung up before its
// sale was written.
func mustHaveHungUp(tb testing.TB, w *world, err error) {
	tb.Helper()
	if !errors.Is(err, context.Canceled) {
		tb.Errorf("hung up: %v, want context.Canceled", err)
	}
	if unknown := errors.Is(err, purchase.ErrUnknownOutcome); unknown != w.entry.WritesLater {
		tb.Errorf("hung up: %v; unknown must be answered where an admitted order is written later, and nowhere else", err)
	}
}

// admitted is how many sales a buyer leaves behind that hung up after its order was
// admitted.
func admitted(w *world) int64 {
	if w.entry.WritesLater {
		return 1
	}
	return 0
}
