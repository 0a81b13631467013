// Package lockstrategytest is the one suite for every strategy: it holds each
// to its promise, and the broken ones to their break. A strategy that promises
// to hold fails the suite when it oversells; one that promises to break fails
// it when it does not, since then the suite would not have caught it.
//
// It runs the shipped code on real connections. Nothing is decided by a sleep:
// buyers are put in their places by a row that the test keeps locked, and by
// the lock events that the strategy itself reports.
package lockstrategytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/verdict"
)

// rounds is how often an exhibit may get away in a rush before the suite says
// that it does not break.
const rounds = 50

// crowdWait is a wait bound that no crowd of this suite reaches, on the slowest
// machine: what a crowd shows must not hang on the clock.
const crowdWait = 2 * time.Minute

// patience bounds every step that must come at once.
const patience = time.Minute

// Exercise runs the suite on one entry. open gives servers of the test's own.
func Exercise(t *testing.T, entry lockstrategy.Entry, open func(t *testing.T) *engine.Engine) {
	open(t) // servers that several tests share start now and are no leak later
	for _, c := range []struct {
		name string
		test func(t *testing.T, w *world)
	}{
		{"Rush", func(t *testing.T, w *world) { rush(t, w, 1, w.promised(lockstrategy.Rush)) }},
		{"TwoProcesses", func(t *testing.T, w *world) { rush(t, w, 2, w.promised(lockstrategy.TwoProcesses)) }},
		{"SoldOutAtZero", soldOutAtZero},
		{"SeveralUnits", severalUnits},
		{"ProductsApart", productsApart},
		{"NoSuchProduct", noSuchProduct},
		{"WaitBound", waitBound},
		{"CancelWhileWaiting", cancelWhileWaiting},
		{"CancelWhileHolding", cancelWhileHolding},
		{"IdempotentRetry", idempotentRetry},
		{"LostLease", lostLease},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaks := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, leaks) }) // runs last: the engine is closed by then
			c.test(t, &world{engine: open(t), entry: entry})
		})
	}
}

// world is one engine with the strategy under test.
type world struct {
	engine *engine.Engine
	entry  lockstrategy.Entry
}

// promised is the catalogue's promise here. Where it makes none, since a single
// run may get by, the break must still be found within rounds.
func (w *world) promised(f lockstrategy.Fault) verdict.Verdict {
	if v := w.entry.Promised(f, w.engine.DB.Name()); v != "" {
		return v
	}
	return w.entry.Promise[f]
}

// instance builds the strategy anew: as far from another instance as a second
// process on the same servers is.
func (w *world) instance(wait time.Duration, observe lockstrategy.Observer) purchase.Strategy {
	deps := Deps(w.engine)
	deps.Settings.Wait = wait
	deps.Settings.LeaseTTL = 2 * time.Minute // no lease runs out by itself, and redsync gives a node 5 % of it to answer
	deps.Observe = observe
	return w.entry.New(deps)
}

// Deps are the engine's connections, with the default settings.
func Deps(e *engine.Engine) lockstrategy.Deps {
	return lockstrategy.Deps{
		DB: e.DB, Redis: e.Redis, Redlock: e.Redlock, Zookeeper: e.Zookeeper, Etcd: e.Etcd, Absent: e.Absent,
		Settings: lockstrategy.DefaultSettings(), Now: time.Now,
	}
}

func (w *world) stock(t *testing.T, name string, units int64) {
	t.Helper()
	err := purchase.InLockingTx(t.Context(), w.engine.DB, func(tx *gorm.DB) error {
		return errors.Join(product.Put(tx, name, units), purchase.Clear(tx, name))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) books(t *testing.T, name string) audit.Report {
	t.Helper()
	report, err := audit.Read(t.Context(), w.engine.DB, name)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func order(name string, buyer int, units int64) purchase.Order {
	return purchase.Order{Product: name, Purchaser: fmt.Sprintf("buyer-%d", buyer), Amount: units}
}

// crowd lets all buyers buy at once, spread over the instances, and counts
// the outcomes.
func crowd(t *testing.T, shops []purchase.Strategy, name string, buyers int, units int64) map[purchase.Outcome]int64 {
	t.Helper()
	var (
		start = make(chan struct{})
		all   sync.WaitGroup
		mu    sync.Mutex
		count = map[purchase.Outcome]int64{}
	)
	for i := range buyers {
		all.Go(func() {
			<-start
			_, err := shops[i%len(shops)].Buy(t.Context(), order(name, i, units))
			mu.Lock()
			defer mu.Unlock()
			count[purchase.OutcomeOf(err)]++
			if purchase.OutcomeOf(err) == purchase.Failed {
				t.Errorf("buyer %d: %v", i, err)
			}
		})
	}
	close(start)
	all.Wait()
	return count
}

// rush judges as `shop rush` does. An exhibit must be caught within rounds.
func rush(t *testing.T, w *world, instances int, promise verdict.Verdict) {
	const stocked, buyers = 20, 60
	var shops []purchase.Strategy
	inside := &holders{}
	for range instances {
		shops = append(shops, w.instance(crowdWait, inside.observe))
	}
	for range rounds {
		w.stock(t, "apple", stocked)
		count := crowd(t, shops, "apple", buyers, 1)
		books := w.books(t, "apple")
		got, why := audit.Judge(audit.Evidence{
			Books: books, Demand: buyers, MaxOverlap: buyers, Lost: max(0, count[purchase.Sold]-books.Records),
			Busy: count[purchase.Busy], Unanswered: count[purchase.Unknown] + count[purchase.Failed],
		})
		if books.Records != count[purchase.Sold] {
			t.Errorf("%d records, %d acknowledged", books.Records, count[purchase.Sold])
		}
		if most := inside.most(); most > 1 && promise == verdict.Holds {
			t.Errorf("%d holders at once", most)
		}
		switch {
		case promise.Keeps(got):
			return
		case promise == verdict.Holds || got != verdict.Holds:
			t.Fatalf("verdict %s (%s), promised %s; %v", got, why, promise, count)
		}
	}
	t.Fatalf("promised as %s, and %d rushes did not show it", promise, rounds)
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

func soldOutAtZero(t *testing.T, w *world) {
	w.stock(t, "apple", 3)
	shop := w.instance(patience, nil)
	for left := int64(2); left >= 0; left-- {
		receipt, err := shop.Buy(t.Context(), order("apple", int(left), 1))
		if err != nil {
			t.Fatal(err)
		}
		if receipt.Left != left || receipt.ID == 0 || receipt.Strategy != w.entry.Name {
			t.Errorf("receipt %+v, want %d left and strategy %s", receipt, left, w.entry.Name)
		}
	}
	if _, err := shop.Buy(t.Context(), order("apple", 9, 1)); !errors.Is(err, purchase.ErrSoldOut) {
		t.Errorf("a buy of nothing: %v, want ErrSoldOut", err)
	}
	if got, want := w.books(t, "apple"), (audit.Report{Stocked: 3, Records: 3, UnitsSold: 3}); got != want {
		t.Errorf("books %+v, want %+v", got, want)
	}
}

// severalUnits: an order is sold whole or not at all.
func severalUnits(t *testing.T, w *world) {
	w.stock(t, "apple", 10)
	shop := w.instance(patience, nil)
	for range 3 {
		if _, err := shop.Buy(t.Context(), order("apple", 1, 3)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := shop.Buy(t.Context(), order("apple", 1, 3)); !errors.Is(err, purchase.ErrSoldOut) {
		t.Errorf("3 units of 1 left: %v, want ErrSoldOut", err)
	}
	if _, err := shop.Buy(t.Context(), order("apple", 1, 1)); err != nil {
		t.Errorf("the last unit: %v", err)
	}
	if got, want := w.books(t, "apple"), (audit.Report{Stocked: 10, Records: 4, UnitsSold: 10}); got != want {
		t.Errorf("books %+v, want %+v", got, want)
	}
}

func productsApart(t *testing.T, w *world) {
	shop := []purchase.Strategy{w.instance(crowdWait, nil)}
	names := []string{"apple", "Apple", "pear {x}"}
	for _, name := range names {
		w.stock(t, name, 5)
	}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { crowd(t, shop, name, 3, 1) })
	}
	all.Wait()
	for _, name := range names {
		books := w.books(t, name)
		if books.Records != 3 {
			t.Errorf("%s: %d records, want 3", name, books.Records)
		}
		if w.promised(lockstrategy.Rush) == verdict.Holds && books.Drift != 0 {
			t.Errorf("%s: drift %d", name, books.Drift)
		}
	}
}

// noSuchProduct: an error inside the section gives the lock back.
func noSuchProduct(t *testing.T, w *world) {
	shop := w.instance(patience, nil)
	for range 2 {
		if _, err := shop.Buy(t.Context(), order("nothing", 1, 1)); !errors.Is(err, purchase.ErrNoProduct) {
			t.Fatalf("%v, want ErrNoProduct", err)
		}
	}
	w.stock(t, "nothing", 1)
	if _, err := shop.Buy(t.Context(), order("nothing", 1, 1)); err != nil {
		t.Errorf("after it was put on sale: %v", err)
	}
}

// idempotentRetry: eight requests under one key are one sale and one answer,
// even for the last unit.
func idempotentRetry(t *testing.T, w *world) {
	w.stock(t, "apple", 1)
	shop := purchase.Idempotent{Strategy: w.instance(crowdWait, nil), DB: w.engine.DB}
	o := order("apple", 1, 1)
	o.IdempotencyKey = "key-1"
	var (
		all      sync.WaitGroup
		receipts [8]purchase.Receipt
		errs     [8]error
	)
	for i := range receipts {
		all.Go(func() { receipts[i], errs[i] = shop.Buy(t.Context(), o) })
	}
	all.Wait()
	for i := range receipts {
		receipts[i].Waited = receipts[i].Waited.Truncate(time.Millisecond) // as it is recorded and answered
		if errs[i] != nil || receipts[i] != receipts[0] {
			t.Errorf("answer %d: %+v, %v; the first: %+v", i, receipts[i], errs[i], receipts[0])
		}
	}
	if books := w.books(t, "apple"); books.Records != 1 || books.Drift != 0 {
		t.Errorf("books %+v, want one record and no drift", books)
	}
	o.Amount = 2
	if _, err := shop.Buy(t.Context(), o); !errors.Is(err, purchase.ErrKeyReused) {
		t.Errorf("another order under the key: %v, want ErrKeyReused", err)
	}
}

// waitBound: a buyer that cannot get on is told so in bounded time, and
// nothing was sold to it.
func waitBound(t *testing.T, w *world) {
	w.stock(t, "apple", 5)
	shop := w.instance(200*time.Millisecond, nil)
	stuck := w.keepRowLocked(t, "apple")
	outcomes := make(chan error, 2)
	for i := range cap(outcomes) {
		go func() {
			_, err := shop.Buy(t.Context(), order("apple", i, 1))
			outcomes <- err
		}()
	}
	// With a lock the one inside is stuck in the database and the other gives
	// up; where the database is the lock both do. Bare, both are stuck.
	first := receive(t, outcomes, "a buyer that gives up")
	if !errors.Is(first, purchase.ErrBusy) {
		t.Errorf("%v, want ErrBusy", first)
	}
	stuck.release()
	second := receive(t, outcomes, "the other buyer")
	if second != nil && !errors.Is(second, purchase.ErrBusy) {
		t.Errorf("the other buyer: %v, want a sale or ErrBusy", second)
	}
	sold := int64(0)
	if second == nil {
		sold = 1
	}
	if books := w.books(t, "apple"); books.Records != sold || books.Drift != 0 {
		t.Errorf("books %+v, want %d records and no drift", books, sold)
	}
}

// cancelWhileWaiting: a buyer that hangs up in the line leaves no gap in it.
func cancelWhileWaiting(t *testing.T, w *world) {
	w.stock(t, "apple", 5)
	shop := w.instance(patience, nil)
	stuck := w.keepRowLocked(t, "apple")
	ahead := make(chan error, 1)
	go func() {
		_, err := shop.Buy(t.Context(), order("apple", 1, 1))
		ahead <- err
	}()
	ctx, hangUp := context.WithCancel(t.Context())
	behind := make(chan error, 1)
	go func() {
		_, err := shop.Buy(ctx, order("apple", 2, 1))
		behind <- err
	}()
	hangUp()
	if err := receive(t, behind, "the buyer that hung up"); !errors.Is(err, context.Canceled) {
		t.Errorf("hung up: %v, want context.Canceled", err)
	}
	stuck.release()
	if err := receive(t, ahead, "the buyer ahead"); err != nil {
		t.Errorf("the buyer ahead: %v", err)
	}
	if _, err := shop.Buy(t.Context(), order("apple", 3, 1)); err != nil {
		t.Errorf("the next buyer: %v", err)
	}
	if books := w.books(t, "apple"); books.Records != 2 || books.Drift != 0 {
		t.Errorf("books %+v, want 2 records and no drift", books)
	}
}

// cancelWhileHolding: a buyer that hangs up inside the section sells nothing
// and gives the lock back at once, not after the TTL.
func cancelWhileHolding(t *testing.T, w *world) {
	w.stock(t, "apple", 5)
	shop := w.instance(patience, nil)
	stuck := w.keepRowLocked(t, "apple")
	ctx, hangUp := context.WithCancel(t.Context())
	inside := make(chan error, 1)
	go func() {
		_, err := shop.Buy(ctx, order("apple", 1, 1))
		inside <- err
	}()
	stuck.waitForVictim(t)
	hangUp()
	stuck.release() // SQLite's busy handler does not hear of a context
	want := int64(1)
	if err := receive(t, inside, "the buyer that hung up"); err == nil {
		want = 2 // its write came before the news of the cancellation, and stands
	}
	if _, err := shop.Buy(t.Context(), order("apple", 2, 1)); err != nil {
		t.Errorf("the next buyer: %v", err)
	}
	if books := w.books(t, "apple"); books.Records != want || books.Drift != 0 {
		t.Errorf("books %+v, want %d records and no drift", books, want)
	}
}

// blindRelease are the exhibits that lostLease must catch: they free a lock
// that is not theirs any more.
var blindRelease = map[string]bool{"setnx": true, "setnx-expire": true, "getset": true, "setnx-ttl": true}

// lostLease: when the lock's server forgets, a second buyer comes in beside
// the first. The first one's release must leave the second one's lock alone.
func lostLease(t *testing.T, w *world) {
	if _, ok := w.instance(patience, nil).(purchase.Resetter); !ok || len(w.entry.Needs) == 0 {
		return // no lease that could be lost: the lock is in this process or in the database itself
	}
	w.stock(t, "apple", 5)
	events := make(chan lockstrategy.Event, 64)
	observe := func(_ context.Context, e lockstrategy.Event) { events <- e }
	stuck := w.keepRowLocked(t, "apple")

	ctx, hangUp := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	shop := w.instance(patience, observe)
	go func() {
		_, err := shop.Buy(ctx, order("apple", 1, 1))
		first <- err
	}()
	expect(t, events, lockstrategy.Acquired, "buyer-1")
	stuck.waitForVictim(t)
	if err := shop.(purchase.Resetter).Reset(t.Context(), "apple"); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := w.instance(patience, observe).Buy(t.Context(), order("apple", 2, 1))
		second <- err
	}()
	expect(t, events, lockstrategy.Acquired, "buyer-2") // two holders, as the catalogue warns
	hangUp()
	if !blindRelease[w.entry.Name] {
		expect(t, events, lockstrategy.Lost, "buyer-1")
	}
	if err := receive(t, first, "the first holder"); err == nil {
		t.Error("the first holder sold, though the row was locked")
	}
	ctx, goHome := context.WithCancel(t.Context())
	third := make(chan error, 1)
	go func() {
		_, err := w.instance(300*time.Millisecond, observe).Buy(ctx, order("apple", 3, 1))
		third <- err
	}()
	if got, want := cameIn(t, events, third), blindRelease[w.entry.Name]; got != want {
		t.Errorf("the first one's release freed the second one's lock: %v, want %v", got, want)
	}
	goHome()
	stuck.release()
	if err := receive(t, second, "the second holder"); err != nil {
		t.Errorf("the second holder: %v", err)
	}
}
