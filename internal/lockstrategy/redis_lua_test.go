package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/lockstrategy/orderstream"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// luaKeys are the strategy's keys in Redis, and settle is its mover's script.
var (
	luaKeys = orderstream.Keys{Strategy: redisLua}
	settle  = redis.NewScript(orderstream.Settle)
)

// longWait is so long that only a buyer with a lost order waits to its end.
const longWait = 20 * time.Second

// newRedisLua returns a shop that shares no memory with others, like a separate process.
func newRedisLua(e *engine.Engine, wait time.Duration) *RedisLua {
	settings := DefaultSettings()
	settings.Wait = wait
	return NewRedisLua(Deps{DB: e.DB, Redis: e.Redis, Settings: settings, Now: time.Now})
}

func restock(t *testing.T, e *engine.Engine, name string, units int64) {
	t.Helper()
	err := purchase.InLockingTx(t.Context(), e.DB, func(tx *gorm.DB) error {
		return errors.Join(product.Put(tx, name, units), purchase.Clear(tx, name))
	})
	if err == nil {
		err = newRedisLua(e, longWait).Reset(t.Context(), name)
	}
	require.NoError(t, err)
}

// keepRow locks the apples' row, so that no order is written to the database.
func keepRow(t *testing.T, e *engine.Engine) (release func()) {
	t.Helper()
	tx := e.DB.Begin()
	require.NoError(t, expect.ErrorOf(product.ForUpdate(tx, "apple")))
	release = sync.OnceFunc(func() { tx.Rollback() })
	t.Cleanup(release)
	return release
}

func apple(purchaser string, units int64) purchase.Order {
	return purchase.Order{Product: "apple", Purchaser: purchaser, Amount: units}
}

// answers collects the buyers' answers. Each buyer buys once, under a name of its own.
type answers struct {
	mu      sync.Mutex
	Sold    map[string]purchase.Receipt
	No      map[string]string // refused, and never answered unknown
	Unknown map[string]bool   // answered unknown at least once
	trouble int               // number of answers other than sold and sold out
	sales   chan struct{}     // one for each sale
}

func newAnswers() *answers {
	return &answers{Sold: map[string]purchase.Receipt{}, No: map[string]string{}, Unknown: map[string]bool{}, sales: make(chan struct{}, 1<<16)}
}

// buy repeats the order until there is an answer. Without a key it asks once.
func (a *answers) buy(ctx context.Context, shop purchase.Strategy, o purchase.Order) error {
	for {
		receipt, err := shop.Buy(ctx, o)
		outcome := purchase.OutcomeOf(err)
		if a.note(o, receipt, err); outcome == purchase.Sold || outcome == purchase.SoldOut {
			return err
		}
		time.Sleep(20 * time.Millisecond) // an unavailable server answers at once
		if o.IdempotencyKey == "" || ctx.Err() != nil {
			return err
		}
	}
}

func (a *answers) note(o purchase.Order, receipt purchase.Receipt, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	outcome := purchase.OutcomeOf(err)
	if outcome != purchase.Sold && outcome != purchase.SoldOut {
		a.trouble++
	}
	switch {
	case outcome == purchase.Sold:
		delete(a.No, o.Purchaser)
		a.Sold[o.Purchaser] = receipt
		a.sales <- struct{}{}
	case outcome == purchase.Unknown:
		delete(a.No, o.Purchaser)
		a.Unknown[o.Purchaser] = true
	case !a.Unknown[o.Purchaser]:
		a.No[o.Purchaser] = err.Error()
	}
}

func (a *answers) check(t *testing.T, e *engine.Engine, left int64) {
	t.Helper()
	require.NoError(t, newRedisLua(e, longWait).Drain(t.Context(), "apple"))
	books, err := audit.Read(t.Context(), e.DB, "apple")
	require.NoError(t, err)
	if books.Drift != 0 || books.Oversold != 0 || books.Duplicates != 0 || books.Leftover != left {
		t.Errorf("stock and records %+v, want no drift and %d left", books, left)
	}
	records, err := purchase.Page(e.DB.WithContext(t.Context()), "apple", 0, 1<<20)
	require.NoError(t, err)
	ids := map[string]int64{}
	for _, r := range records {
		expect.Equal(t, ids[r.Purchaser], 0, r.Purchaser, "has two records")
		if why, no := a.No[r.Purchaser]; no {
			t.Errorf("%s has a record and was told %s", r.Purchaser, why)
		}
		ids[r.Purchaser] = r.ID
	}
	for purchaser, receipt := range a.Sold {
		if receipt.ID != ids[purchaser] || receipt.ID == 0 || receipt.Purchaser != purchaser {
			t.Errorf("lost: %s was told %+v, the record is %d", purchaser, receipt, ids[purchaser])
		}
	}
	t.Logf("%d stocked, %d sold; told: %d sold, %d unknown, %d no", books.Stocked, books.UnitsSold, len(a.Sold), len(a.Unknown), len(a.No))
}

// mustHaveStock compares the stock in Redis, as the next buyer sees it.
func mustHaveStock(t *testing.T, e *engine.Engine, want int64) {
	t.Helper()
	require.NoError(t, expect.ErrorOf(newRedisLua(e, longWait).loadStock(t.Context(), "apple", "")))
	if got, err := e.Redis.Get(t.Context(), luaKeys.Stock("apple")).Int64(); got != want || err != nil {
		t.Errorf("Redis has %d, %v; want %d", got, err, want)
	}
}

// TestRedisLuaAskAgain: a buyer that was answered unknown asks another shop with the key from the
// answer, and gets the sale that was made.
func TestRedisLuaAskAgain(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	release := keepRow(t, e)
	o := apple("ann", 2)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	unknown := make(chan error, 1)
	go func() {
		_, err := newRedisLua(e, longWait).Buy(ctx, o)
		unknown <- err
	}()
	require.Eventually(t, "the order", func() bool { return e.Redis.XLen(t.Context(), luaKeys.Stream("apple")).Val() == 1 })
	hangUp()
	err := <-unknown
	if !errors.Is(err, purchase.ErrUnknownOutcome) {
		t.Fatalf("%v, want that it is unknown", err)
	}
	by := regexp.MustCompile(`Idempotency-Key: (\S+) and purchaser: ann$`).FindStringSubmatch(err.Error())
	if by == nil {
		t.Fatalf("no key to ask by in %q", err)
	}
	o.IdempotencyKey = by[1]
	again := purchase.NewIdempotent(newRedisLua(e, soon), e.DB)
	answer := make(chan purchase.Receipt, 1)
	go func() { // asks while the order is under way
		receipt, err := again.Buy(t.Context(), o)
		expect.NoError(t, err)
		answer <- receipt
	}()
	release()
	first := <-answer
	second, err := again.Buy(t.Context(), o)
	if err != nil || first.ID == 0 || second.ID != first.ID || !second.Replayed {
		t.Errorf("%+v, then %+v, %v", first, second, err)
	}
	answered := newAnswers()
	answered.Sold["ann"] = first
	answered.check(t, e, 3)
}

// TestRedisLuaTooLow: a buyer gets its units although the stock in Redis is too low.
func TestRedisLuaTooLow(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	require.NoError(t, e.Redis.Set(t.Context(), luaKeys.Stock("apple"), 0, 0).Err())
	expect.NoError(t, expect.ErrorOf(newRedisLua(e, longWait).Buy(t.Context(), apple("ann", 5))))
	newAnswers().check(t, e, 0)
}

// TestRedisLuaClockBehind: Redis assigns ids that are lower than the last id in the database. The
// first order with such an id is answered unknown, and later orders are sold.
func TestRedisLuaClockBehind(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	shop := newRedisLua(e, longWait)
	require.NoError(t, expect.ErrorOf(shop.Buy(t.Context(), apple("ann", 1))))
	require.NoError(t, e.DB.Exec("UPDATE product SET last_entry = '9999999999999-7' WHERE name = 'apple'").Error)
	expect.ErrorIs(t, expect.ErrorOf(shop.Buy(t.Context(), apple("bob", 1))), purchase.ErrUnknownOutcome)
	if err := shop.Drain(t.Context(), "apple"); err != nil { // bob gets his answer before his entry is removed
		t.Fatal(err)
	}
	expect.NoError(t, expect.ErrorOf(shop.Buy(t.Context(), apple("cec", 1))))
	newAnswers().check(t, e, 3)
	mustHaveStock(t, e, 3)
}

// TestRedisLuaResetWaits: a restock does not overtake an order on its way to the database.
func TestRedisLuaResetWaits(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	shop := newRedisLua(e, longWait)
	require.NoError(t, expect.ErrorOf(shop.enter(t.Context(), apple("ann", 1), time.Now())))
	release := keepRow(t, e)
	drained := make(chan error, 1)
	go func() { drained <- shop.Drain(t.Context(), "apple") }()
	require.Eventually(t, "a batch under way", func() bool {
		var name string
		var waits int
		row := e.DB.Raw("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Row()
		return row.Scan(&name, &waits) == nil && waits > 0 // the batch waits for the row
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	expect.ErrorIs(t, shop.Reset(ctx, "apple"), context.DeadlineExceeded)
	release()
	require.NoError(t, <-drained)
	expect.NoError(t, shop.Reset(t.Context(), "apple"))
	newAnswers().check(t, e, 4)
}

// TestRedisLuaKeyOfAnother: an order whose key belongs to a sale of another product is not sold, and
// takes no unit.
func TestRedisLuaKeyOfAnother(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	restock(t, e, "pear", 5)
	shop := newRedisLua(e, longWait)
	o := apple("ann", 1)
	o.IdempotencyKey = "key"
	pear := o
	pear.Product = "pear"
	require.NoError(t, expect.ErrorOf(shop.Buy(t.Context(), pear)))
	if receipt, err := shop.Buy(t.Context(), o); !errors.Is(err, purchase.ErrKeyReused) {
		t.Errorf("%+v, %v, want ErrKeyReused", receipt, err)
	}
	receipt, err := shop.Buy(t.Context(), pear)
	if err != nil || receipt.ID == 0 {
		t.Errorf("the same order again: %+v, %v", receipt, err)
	}
	newAnswers().check(t, e, 5)
	mustHaveStock(t, e, 5)
}

func openOn(t *testing.T, db, redis string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{DB: db, Redis: redis, Wait: enginetest.Wait, Conns: 16})
	require.NoError(t, err)
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
		require.NoError(t, e.DB.Exec("SET GLOBAL "+set).Error)
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
	require.NoError(t, err)
	if a := <-here.Await(o, entry).Answer; a.Err != nil {
		t.Fatal(a.Err)
	}
	require.NoError(t, errors.Join(server.Kill(), server.Start()))
	var records int64
	require.Eventually(t, "the database is back", func() bool {
		return e.DB.Model(&purchase.Record{}).Where("idempotency_key = ?", "late").Count(&records).Error == nil
	})
	expect.Equal(t, records, 1, "records after the answer sold")
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
		require.NoError(t, expect.ErrorOf(crashed.enter(t.Context(), o, time.Now())))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { newRedisLua(e, longWait).Work(ctx) })
	}
	require.Eventually(t, "an empty stream", func() bool {
		return e.Redis.XLen(ctx, luaKeys.Stream("apple")).Val() == 0 && e.Redis.SCard(ctx, luaKeys.Products("apple")).Val() == 0
	})
	stop()
	workers.Wait()
	newAnswers().check(t, e, 100-16)
	mustHaveStock(t, e, 100-16)
}

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
		require.NoError(t, script.Load(t.Context(), e.Redis).Err())
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
				require.NoError(t, answered.buy(t.Context(), shop, o))
				require.Eventually(t, "the loss", l.lost.Load) // a buyer gets its answer before its entry is removed
				answered.check(t, e, 4)
				mustHaveStock(t, e, 4)

				// The database has one unit, but Redis has four.
				require.NoError(t, e.DB.Exec("UPDATE product SET amount = 1, stocked = 2 WHERE name = 'apple'").Error)
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
	require.NoError(t, expect.ErrorOf(shop.enter(t.Context(), apple("ann", 3), time.Now())))
	other := NewConditional(Deps{DB: e.DB, Settings: DefaultSettings(), Now: time.Now})
	require.NoError(t, expect.ErrorOf(other.Buy(t.Context(), apple("bob", 4))))
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
		require.NoError(t, err)
		mustHaveStock(t, e, 1)
	}
	expect.NoError(t, expect.ErrorOf(shop.Buy(t.Context(), apple("cec", 1))), "the last unit")
	expect.ErrorIs(t, expect.ErrorOf(shop.Buy(t.Context(), apple("dan", 1))), purchase.ErrSoldOut)
	newAnswers().check(t, e, 0)
}

// TestRedisLuaProductsKept: an order arrives just after a worker has found no more orders. The
// product stays in the set, so the next worker finds the order.
func TestRedisLuaProductsKept(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	l := &lossy{}
	shop := lossyShop(t, e, l)
	l.command = settle.Hash()
	l.before = func() {
		expect.NoError(t, expect.ErrorOf(newRedisLua(e, longWait).enter(t.Context(), apple("ann", 1), time.Now())))
	}
	require.NoError(t, shop.Drain(t.Context(), "apple"))
	if known := e.Redis.SIsMember(t.Context(), luaKeys.Products("apple"), "apple").Val(); !known || !l.lost.Load() {
		t.Errorf("the product is known: %t; the order came: %t", known, l.lost.Load())
	}
	newAnswers().check(t, e, 4)
	if known := e.Redis.SIsMember(t.Context(), luaKeys.Products("apple"), "apple").Val(); known {
		t.Error("the product is kept though it has no orders")
	}
}
