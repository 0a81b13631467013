// Package lockstrategytest is the one suite for every strategy. Each of its tests
// says what a sound strategy keeps. An exhibit passes all of them but those that
// must catch it: there it must fail, for the reason that its header gives.
//
// It runs the shipped code on real connections. Nothing is decided by a sleep:
// buyers are put in their places by a row that the test keeps locked, by the lock
// events that the strategy itself reports, and by gates in front of a buyer's
// Redis commands. Time passes when the test says so.
package lockstrategytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/verdict"
)

// crowdWait is a wait bound that no crowd of this suite reaches, on the slowest
// machine: what a crowd shows must not hang on the clock.
const crowdWait = 2 * time.Minute

// patience bounds every step that must come at once.
const patience = time.Minute

// A check fails tb when the strategy is not sound.
type check struct {
	name string
	run  func(tb testing.TB, w *world)
}

// checks in the order in which they run.
func checks() []check {
	return []check{
		{"Rush", func(tb testing.TB, w *world) { rush(tb, w, 1) }},
		{"TwoProcesses", func(tb testing.TB, w *world) { rush(tb, w, 2) }},
		{"SoldOutAtZero", soldOutAtZero},
		{"SeveralUnits", severalUnits},
		{"ProductsApart", productsApart},
		{"ErrorInside", errorInside},
		{"WaitBound", waitBound},
		{"CancelWhileWaiting", cancelWhileWaiting},
		{"CancelWhileHolding", cancelWhileHolding},
		{"IdempotentRetry", idempotentRetry},
		{"HolderCrash", holderCrash},
		{"ExpiredLease", expiredLease},
		{"LostLease", lostLease},
		{"ReleaseRace", releaseRace},
		{"StockCrash", stockCrash},
		{"StockForgotten", stockForgotten},
	}
}

// Exercise runs the suite on one entry. open gives servers of the test's own.
// expect says which tests must catch it, see Expected; Sound expects none to.
func Exercise(t *testing.T, entry lockstrategy.Entry, open func(t *testing.T) *engine.Engine, expect Expect) {
	open(t) // servers that several tests share start now and are no leak later
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			leaks := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, leaks) }) // runs last: the engine is closed by then
			w := &world{engine: open(t), entry: entry}
			t.Cleanup(w.close)
			if reason, exhibit := expect.caught(c.name, w); exhibit {
				mustCatch(t, w, c, reason)
				return
			}
			c.run(t, w)
		})
	}
}

// world is one engine with the strategy under test.
type world struct {
	engine *engine.Engine
	entry  lockstrategy.Entry

	mu      sync.Mutex
	closers []io.Closer
}

// instance builds the strategy anew: as far from another instance as a second
// process on the same servers is.
func (w *world) instance(wait time.Duration, observe lockstrategy.Observer) purchase.Strategy {
	deps := onengine.Deps(w.engine)
	deps.Settings.Wait = wait
	deps.Settings.LeaseTTL = 2 * time.Minute // no lease runs out by itself, and redsync gives a node 5 % of it to answer
	deps.Observe = observe
	return w.build(deps)
}

// build makes an instance that ends with the test.
func (w *world) build(deps lockstrategy.Deps) purchase.Strategy {
	s := w.entry.New(deps)
	if c, ok := s.(io.Closer); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.closers = append(w.closers, c)
	}
	return s
}

func (w *world) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.closers {
		_ = c.Close()
	}
}

func (w *world) stock(tb testing.TB, name string, units int64) {
	tb.Helper()
	err := purchase.InLockingTx(tb.Context(), w.engine.DB, func(tx *gorm.DB) error {
		return errors.Join(product.Put(tx, name, units), purchase.Clear(tx, name))
	})
	if err != nil {
		tb.Fatal(err)
	}
	if r, ok := w.instance(patience, nil).(purchase.Resetter); ok {
		if err := r.Reset(tb.Context(), name); err != nil { // as a restock does
			tb.Fatal(err)
		}
	}
}

// seesVictims tells whether this database says who waits for a row.
func (w *world) seesVictims() bool { return w.engine.DB.Name() == "mysql" }

// settle moves what the strategy has taken on and not done yet.
func (w *world) settle(tb testing.TB, name string) {
	tb.Helper()
	if d, ok := w.instance(patience, nil).(interface {
		Drain(ctx context.Context, product string) error
	}); ok {
		if err := d.Drain(tb.Context(), name); err != nil {
			tb.Fatal(err)
		}
	}
}

func (w *world) books(tb testing.TB, name string) audit.Report {
	tb.Helper()
	report, err := audit.Read(tb.Context(), w.engine.DB, name)
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

func order(name string, buyer int, units int64) purchase.Order {
	return purchase.Order{Product: name, Purchaser: fmt.Sprintf("buyer-%d", buyer), Amount: units}
}

// crowd lets all buyers buy at once, spread over the instances, and counts
// the outcomes.
func crowd(tb testing.TB, shops []purchase.Strategy, name string, buyers int, units int64) map[purchase.Outcome]int64 {
	tb.Helper()
	var (
		start = make(chan struct{})
		all   sync.WaitGroup
		mu    sync.Mutex
		count = map[purchase.Outcome]int64{}
	)
	for i := range buyers {
		all.Go(func() {
			<-start
			_, err := shops[i%len(shops)].Buy(tb.Context(), order(name, i, units))
			mu.Lock()
			defer mu.Unlock()
			count[purchase.OutcomeOf(err)]++
			if purchase.OutcomeOf(err) == purchase.Failed {
				tb.Errorf("buyer %d: %v", i, err)
			}
		})
	}
	close(start)
	all.Wait()
	return count
}

// rush judges as `shop rush` does.
func rush(tb testing.TB, w *world, instances int) {
	const stocked, buyers = 20, 60
	var shops []purchase.Strategy
	inside := &holders{}
	for range instances {
		shops = append(shops, w.instance(crowdWait, inside.observe))
	}
	w.stock(tb, "apple", stocked)
	count := crowd(tb, shops, "apple", buyers, 1)
	books := w.books(tb, "apple")
	got, why := audit.Judge(audit.Evidence{
		Books: books, Demand: buyers, MaxOverlap: buyers, Lost: max(0, count[purchase.Sold]-books.Records),
		SoldOut: count[purchase.SoldOut], Busy: count[purchase.Busy], Unanswered: count[purchase.Unknown] + count[purchase.Failed],
	})
	if books.Records != count[purchase.Sold] {
		tb.Errorf("%d records, %d acknowledged", books.Records, count[purchase.Sold])
	}
	if got != verdict.Holds {
		tb.Errorf("verdict %s (%s), %v", got, why, count)
	}
	if most := inside.most(); most > 1 && got == verdict.Holds {
		tb.Errorf("%d holders at once", most)
	}
}

// holders counts who is inside, by the lock events.
type holders struct {
	mu            sync.Mutex
	now, mostEver int
}

func (h *holders) observe(_ context.Context, e lockstrategy.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case lockstrategy.Acquired:
		h.now++
		h.mostEver = max(h.mostEver, h.now)
	case lockstrategy.Released:
		h.now--
	}
}

func (h *holders) most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mostEver
}

func soldOutAtZero(tb testing.TB, w *world) {
	w.stock(tb, "apple", 3)
	shop := w.instance(patience, nil)
	for left := int64(2); left >= 0; left-- {
		receipt, err := shop.Buy(tb.Context(), order("apple", int(left), 1))
		if err != nil {
			tb.Fatal(err)
		}
		if receipt.Left != left || receipt.ID == 0 || receipt.Strategy != w.entry.Name {
			tb.Errorf("receipt %+v, want %d left and strategy %s", receipt, left, w.entry.Name)
		}
	}
	if _, err := shop.Buy(tb.Context(), order("apple", 9, 1)); !errors.Is(err, purchase.ErrSoldOut) {
		tb.Errorf("a buy of nothing: %v, want ErrSoldOut", err)
	}
	if got, want := w.books(tb, "apple"), (audit.Report{Stocked: 3, Records: 3, UnitsSold: 3}); got != want {
		tb.Errorf("books %+v, want %+v", got, want)
	}
}

// severalUnits: an order is sold whole or not at all.
func severalUnits(tb testing.TB, w *world) {
	w.stock(tb, "apple", 10)
	shop := w.instance(patience, nil)
	for range 3 {
		if _, err := shop.Buy(tb.Context(), order("apple", 1, 3)); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := shop.Buy(tb.Context(), order("apple", 1, 3)); !errors.Is(err, purchase.ErrSoldOut) {
		tb.Errorf("3 units of 1 left: %v, want ErrSoldOut", err)
	}
	if _, err := shop.Buy(tb.Context(), order("apple", 1, 1)); err != nil {
		tb.Errorf("the last unit: %v", err)
	}
	if got, want := w.books(tb, "apple"), (audit.Report{Stocked: 10, Records: 4, UnitsSold: 10}); got != want {
		tb.Errorf("books %+v, want %+v", got, want)
	}
}

// productsApart: products have nothing to do with each other, whatever their
// names; nobody waits for the line of another one.
func productsApart(tb testing.TB, w *world) {
	shop := w.instance(crowdWait, nil)
	names := []string{"apple", "Apple", "pear {x}"}
	var all sync.WaitGroup
	for _, name := range names {
		w.stock(tb, name, 5)
	}
	for _, name := range names {
		all.Go(func() {
			for i := range 3 {
				if _, err := shop.Buy(tb.Context(), order(name, i, 1)); err != nil {
					tb.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
	for _, name := range names {
		if books := w.books(tb, name); books.Records != 3 || books.Drift != 0 {
			tb.Errorf("%s: books %+v, want 3 records and no drift", name, books)
		}
	}
	if !w.seesVictims() {
		return // a SQLite file has one writer
	}
	stuck := w.keepRowLocked(tb, "apple")
	held := make(chan error, 5)
	for i := range cap(held) {
		go func() {
			_, err := shop.Buy(tb.Context(), order("apple", i, 1))
			held <- err
		}()
	}
	stuck.waitForVictims(tb, 1)
	if _, err := shop.Buy(tb.Context(), order("Apple", 1, 1)); err != nil {
		tb.Errorf("a buyer of another product: %v", err)
	}
	stuck.release()
	for range cap(held) {
		if err := receive(tb, held, "a buyer of the held product"); err != nil && !errors.Is(err, purchase.ErrSoldOut) {
			tb.Error(err)
		}
	}
}

// errorInside: an error inside the section gives the lock back.
func errorInside(tb testing.TB, w *world) {
	shop := w.instance(patience, nil)
	for range 2 {
		if _, err := shop.Buy(tb.Context(), order("nothing", 1, 1)); !errors.Is(err, purchase.ErrNoProduct) {
			tb.Fatalf("%v, want ErrNoProduct", err)
		}
	}
	w.stock(tb, "nothing", 1)
	if _, err := shop.Buy(tb.Context(), order("nothing", 1, 1)); err != nil {
		tb.Errorf("after it was put on sale: %v", err)
	}
}

// idempotentRetry: eight requests under one key are one sale and one answer,
// even for the last unit, and through two processes.
func idempotentRetry(tb testing.TB, w *world) {
	w.stock(tb, "apple", 1)
	var shops []*purchase.Idempotent
	for range 2 {
		shops = append(shops, purchase.NewIdempotent(w.instance(crowdWait, nil), w.engine.DB))
	}
	if w.entry.AdmitsFirst {
		shops[1] = shops[0]
	}
	o := order("apple", 1, 1)
	o.IdempotencyKey = "key-1"
	var (
		all      sync.WaitGroup
		receipts [8]purchase.Receipt
		errs     [8]error
	)
	for i := range receipts {
		all.Go(func() { receipts[i], errs[i] = shops[i%2].Buy(tb.Context(), o) })
	}
	all.Wait()
	for i := range receipts {
		receipts[i].Replayed = false
		receipts[i].Waited = receipts[i].Waited.Truncate(time.Millisecond) // as it is recorded and answered
		if errs[i] != nil || receipts[i] != receipts[0] {
			tb.Errorf("answer %d: %+v, %v; the first: %+v", i, receipts[i], errs[i], receipts[0])
		}
	}
	if books := w.books(tb, "apple"); books.Records != 1 || books.Drift != 0 {
		tb.Errorf("books %+v, want one record and no drift", books)
	}
	o.Amount = 2
	if _, err := shops[0].Buy(tb.Context(), o); !errors.Is(err, purchase.ErrKeyReused) {
		tb.Errorf("another order under the key: %v, want ErrKeyReused", err)
	}
}

// waitBound: a buyer that cannot get on is told so in bounded time, and nothing
// was sold to it.
func waitBound(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	shop := w.instance(200*time.Millisecond, nil)
	stuck := w.keepRowLocked(tb, "apple")
	start := time.Now()
	outcomes := make(chan error, 2)
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
			tb.Errorf("told after %s; the wait bound is 200 ms, and this was the database's", took)
		}
		if !w.seesVictims() {
			stuck.release() // SQLite's busy handler does not hear of a context, for the one who is inside
		}
	}
	stuck.release()
	w.settle(tb, "apple")
	if w.entry.WritesLater {
		sold = 2
	}
	if books := w.books(tb, "apple"); books.Records != sold || books.Drift != 0 {
		tb.Errorf("books %+v, want %d records and no drift", books, sold)
	}
}

// leases tells whether the lock is a lease of another server than the database.
func (w *world) leases(shop purchase.Strategy) bool {
	_, locked := shop.(*lockstrategy.Locked)
	return locked && len(w.entry.Needs) > 0
}

// cancelWhileWaiting: a buyer that hangs up in the line leaves no gap in it.
func cancelWhileWaiting(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := make(chan lockstrategy.Event, 64)
	shop := w.instance(patience, func(_ context.Context, e lockstrategy.Event) { events <- e })
	stuck := w.keepRowLocked(tb, "apple")
	ahead := make(chan error, 1)
	go func() {
		_, err := shop.Buy(tb.Context(), order("apple", 1, 1))
		ahead <- err
	}()
	stuck.waitForVictims(tb, 1)
	ctx, hangUp := context.WithCancel(tb.Context())
	behind := make(chan error, 1)
	go func() {
		_, err := shop.Buy(ctx, order("apple", 2, 1))
		behind <- err
	}()
	if w.entry.WaitsFor == lockstrategy.TheRow {
		stuck.waitForVictims(tb, 2)
	} else {
		expect(tb, events, lockstrategy.Waiting, "buyer-2")
	}
	hangUp()
	want := int64(2)
	err := receive(tb, behind, "the buyer that hung up")
	if !errors.Is(err, context.Canceled) {
		tb.Errorf("hung up: %v, want context.Canceled", err)
	}
	if w.entry.WritesLater && errors.Is(err, purchase.ErrUnknownOutcome) {
		want = 3
	}
	stuck.release()
	if err := receive(tb, ahead, "the buyer ahead"); err != nil {
		tb.Errorf("the buyer ahead: %v", err)
	}
	if _, err := shop.Buy(tb.Context(), order("apple", 3, 1)); err != nil {
		tb.Errorf("the next buyer: %v", err)
	}
	if books := w.books(tb, "apple"); books.Records != want || books.Drift != 0 {
		tb.Errorf("books %+v, want %d records and no drift", books, want)
	}
}

// cancelWhileHolding: a buyer that hangs up inside the section sells nothing
// and gives the lock back at once, not after the TTL.
func cancelWhileHolding(tb testing.TB, w *world) {
	w.stock(tb, "apple", 5)
	events := make(chan lockstrategy.Event, 64)
	shop := w.instance(patience, func(_ context.Context, e lockstrategy.Event) { events <- e })
	stuck := w.keepRowLocked(tb, "apple")
	ctx, hangUp := context.WithCancel(tb.Context())
	inside := make(chan error, 1)
	go func() {
		_, err := shop.Buy(ctx, order("apple", 1, 1))
		inside <- err
	}()
	if w.entry.WaitsFor == lockstrategy.ALock {
		expect(tb, events, lockstrategy.Acquired, "buyer-1")
	}
	stuck.waitForVictims(tb, 1)
	hangUp()
	stuck.release() // SQLite's busy handler does not hear of a context
	want := int64(1)
	if err := receive(tb, inside, "the buyer that hung up"); err == nil || w.entry.WritesLater && errors.Is(err, purchase.ErrUnknownOutcome) {
		want = 2 // its write came before the news of the cancellation, and stands
	}
	if _, err := shop.Buy(tb.Context(), order("apple", 2, 1)); err != nil {
		tb.Errorf("the next buyer: %v", err)
	}
	if books := w.books(tb, "apple"); books.Records != want || books.Drift != 0 {
		tb.Errorf("books %+v, want %d records and no drift", books, want)
	}
}

// lostLease: when the lock's server forgets, a second buyer comes in beside
// the first. The first one's release must leave the second one's lock alone.
func lostLease(tb testing.TB, w *world) {
	untilConclusive(tb, func() bool { return lostLeaseOnce(tb, w) })
}

// tries is how often a test begins anew when the machine was too slow for it.
const tries = 5

// untilConclusive runs a test until it has shown something: a holder that has
// given up by itself, since a SQLite file is waited for no longer than
// enginetest.Wait, lets the next one in by right.
func untilConclusive(tb testing.TB, once func() bool) {
	for range tries {
		if once() {
			return
		}
	}
	tb.Errorf("%d times the holder had given up before the test was over", tries)
}

func lostLeaseOnce(tb testing.TB, w *world) (conclusive bool) {
	events := make(chan lockstrategy.Event, 64)
	observe := func(_ context.Context, e lockstrategy.Event) { events <- e }
	shop := w.instance(patience, observe)
	if !w.leases(shop) {
		return true // the lock is in this process or in the database itself
	}
	w.stock(tb, "apple", 5)
	stuck := w.keepRowLocked(tb, "apple")
	defer stuck.release()

	ctx, hangUp := context.WithCancel(tb.Context())
	defer hangUp()
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := shop.Buy(ctx, order("apple", 1, 1))
		first <- err
	}()
	expect(tb, events, lockstrategy.Acquired, "buyer-1")
	stuck.waitForVictims(tb, 1)
	if err := shop.(purchase.Resetter).Reset(tb.Context(), "apple"); err != nil {
		tb.Fatal(err)
	}
	go func() {
		_, err := w.instance(patience, observe).Buy(tb.Context(), order("apple", 2, 1))
		second <- err
	}()
	expect(tb, events, lockstrategy.Acquired, "buyer-2") // two holders, as the catalogue warns
	hangUp()
	if err := receive(tb, first, "the first holder"); err == nil {
		tb.Error("the first holder sold, though the row was locked")
	}
	if !told(events, lockstrategy.Lost) {
		tb.Error("the first holder's loss was not noticed at its release")
	}
	return w.thirdStaysOut(tb, stuck, events, observe, second)
}

// told tells whether an event of that kind is among those that are there.
func told(events <-chan lockstrategy.Event, kind lockstrategy.EventKind) bool {
	for {
		select {
		case e := <-events:
			if e.Kind == kind {
				return true
			}
		default:
			return false
		}
	}
}

// thirdStaysOut fails when a third buyer gets in beside the second, who holds
// the lock and stands in front of the locked row. It is not conclusive when the
// second has given up meanwhile.
func (w *world) thirdStaysOut(
	tb testing.TB, stuck *stuck, events <-chan lockstrategy.Event, observe lockstrategy.Observer, second chan error,
) (conclusive bool) {
	tb.Helper()
	ctx, goHome := context.WithCancel(tb.Context())
	defer goHome()
	third := make(chan error, 1)
	go func() {
		_, err := w.instance(300*time.Millisecond, observe).Buy(ctx, order("apple", 3, 1))
		third <- err
	}()
	in := cameIn(tb, events, third)
	select {
	case <-second:
		goHome()
		stuck.release()
		if in {
			_ = receive(tb, third, "the third buyer")
		}
		return false
	default:
	}
	if in {
		tb.Error("the first one's release freed the second one's lock")
		goHome()
		_ = receive(tb, third, "the third buyer")
	}
	stuck.release()
	if err := receive(tb, second, "the second holder"); err != nil {
		tb.Errorf("the second holder: %v", err)
	}
	return true
}
