package lockstrategy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/localserver"
	"github.com/oversell/oversell/internal/localserver/localservertest"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// patient is a wait that no buyer of these tests sits out but for a lost order.
const patient = 20 * time.Second

// newRedisLua is a shop of its own, as far from another one as a process.
func newRedisLua(e *engine.Engine, wait time.Duration) *RedisLua {
	settings := DefaultSettings()
	settings.Wait = wait
	return NewRedisLua(Deps{DB: e.DB, Redis: e.Redis, Settings: settings, Now: time.Now})
}

// openOn opens servers that run already.
func openOn(t *testing.T, db, redis string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{DB: db, Redis: redis, Wait: enginetest.Wait, Conns: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func restock(t *testing.T, e *engine.Engine, name string, units int64) {
	t.Helper()
	err := purchase.InLockingTx(t.Context(), e.DB, func(tx *gorm.DB) error {
		return errors.Join(product.Put(tx, name, units), purchase.Clear(tx, name))
	})
	if err == nil {
		err = newRedisLua(e, patient).Reset(t.Context(), name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// keepRow locks the apples' row, so that no order gets into the database.
func keepRow(t *testing.T, e *engine.Engine) (release func()) {
	t.Helper()
	tx := e.DB.Begin()
	if _, err := product.ForUpdate(tx, "apple"); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { tx.Rollback() })
	t.Cleanup(release)
	return release
}

// eventually waits for what must come, on the slowest machine.
func eventually(t *testing.T, what string, come func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !come(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, soon)
		}
	}
}

func apple(purchaser string, units int64) purchase.Order {
	return purchase.Order{Product: "apple", Purchaser: purchaser, Amount: units}
}

// answers are what the buyers were told. Each buys once, under a name of its own.
type answers struct {
	mu      sync.Mutex
	Sold    map[string]purchase.Receipt
	No      map[string]string // told that nothing was sold, and never unknown
	Unknown map[string]bool   // told unknown at least once
	trouble int               // how often a buyer was told neither sold nor sold out
	sales   chan struct{}     // one for each sale
}

func newAnswers() *answers {
	return &answers{Sold: map[string]purchase.Receipt{}, No: map[string]string{}, Unknown: map[string]bool{}, sales: make(chan struct{}, 1<<16)}
}

// crowd lets buyers buy one unit after the other, all at once, until each is told
// that it is sold out.
func (a *answers) crowd(t *testing.T, name string, buyers int, shops ...purchase.Strategy) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*soon)
	defer cancel()
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			for n := 0; ; n++ {
				o := apple(fmt.Sprintf("%s-%d-%d", name, i, n), 1)
				if i%8 != 7 { // the eighth has no key to ask again by
					o.IdempotencyKey = "key of " + o.Purchaser
				}
				err := a.buy(ctx, shops[i%len(shops)], o)
				if errors.Is(err, purchase.ErrSoldOut) {
					return
				}
				var down *purchase.Unavailable
				if purchase.OutcomeOf(err) == purchase.Failed && !errors.As(err, &down) {
					t.Errorf("%s: %v", o.Purchaser, err)
				}
				if ctx.Err() != nil {
					t.Errorf("%s: not sold out in time: %v", o.Purchaser, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// buy asks until there is an answer, if it has a key to ask by.
func (a *answers) buy(ctx context.Context, shop purchase.Strategy, o purchase.Order) error {
	for {
		receipt, err := shop.Buy(ctx, o)
		outcome := purchase.OutcomeOf(err)
		if a.note(o, receipt, err); outcome == purchase.Sold || outcome == purchase.SoldOut {
			return err
		}
		time.Sleep(20 * time.Millisecond) // a server that is down says so at once
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

// rush is a crowd among which strike is run, times times, each when n more sales
// were acknowledged.
func (a *answers) rush(t *testing.T, stocked, times, n int, strike func() error, shops ...purchase.Strategy) {
	t.Helper()
	over := make(chan struct{})
	struck := 0
	var faults sync.WaitGroup
	faults.Go(func() {
		for range times {
			for range n {
				select {
				case <-a.sales:
				case <-over: // a slow machine: most were told unknown
					return
				}
			}
			if a.acknowledged() < stocked {
				struck++
			}
			if err := strike(); err != nil {
				t.Error(err)
			}
		}
	})
	a.crowd(t, "buyer", 32, shops...)
	close(over)
	faults.Wait()
	if struck == 0 {
		t.Error("all was sold before anything happened: this test has shown nothing")
	}
}

func (a *answers) acknowledged() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.Sold)
}

type server interface {
	Kill() error
	Start() error
}

// outage kills a server, and starts it again when a buyer has met that: was told
// unknown, or any other trouble.
func (a *answers) outage(s server, unknown bool) func() error {
	met := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		if unknown {
			return len(a.Unknown)
		}
		return a.trouble
	}
	return func() error {
		before := met()
		if err := s.Kill(); err != nil {
			return err
		}
		for deadline := time.Now().Add(soon); met() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return errors.Join(errors.New("no buyer has met the outage"), s.Start())
			}
		}
		return s.Start()
	}
}

// check holds the records against what the buyers were told.
func (a *answers) check(t *testing.T, e *engine.Engine, left int64) {
	t.Helper()
	if err := newRedisLua(e, patient).Drain(t.Context(), "apple"); err != nil {
		t.Fatal(err)
	}
	books, err := audit.Read(t.Context(), e.DB, "apple")
	if err != nil {
		t.Fatal(err)
	}
	if books.Drift != 0 || books.Oversold != 0 || books.Duplicates != 0 || books.Leftover != left {
		t.Errorf("books %+v, want no drift and %d left", books, left)
	}
	records, err := purchase.Page(e.DB.WithContext(t.Context()), "apple", 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]int64{}
	for _, r := range records {
		if ids[r.Purchaser] != 0 {
			t.Errorf("%s has two records", r.Purchaser)
		}
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

// bothShops are an impatient and a patient one, as the shop serves them.
func bothShops(e *engine.Engine) []purchase.Strategy {
	return []purchase.Strategy{
		purchase.NewIdempotent(newRedisLua(e, patient), e.DB),
		purchase.NewIdempotent(newRedisLua(e, 300*time.Millisecond), e.DB),
	}
}

// TestRedisLuaRedisKilled: Redis with its append-only file is killed in the rush,
// three times. Nothing is lost and everything is sold.
func TestRedisLuaRedisKilled(t *testing.T) {
	server, err := localserver.StartDurableRedis(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	e := openOn(t, enginetest.Local(t).URLs.DB, server.URL())
	restock(t, e, "apple", 2000)
	told := newAnswers()
	told.rush(t, 2000, 3, 100, told.outage(server, false), bothShops(e)...)
	told.check(t, e, 0)
}

// TestRedisLuaDatabaseKilled: the same with the database.
func TestRedisLuaDatabaseKilled(t *testing.T) {
	server, err := localserver.StartMySQL(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	e := openOn(t, server.URL(), enginetest.Local(t).URLs.Redis)
	restock(t, e, "apple", 2000)
	told := newAnswers()
	told.rush(t, 2000, 1, 100, told.outage(server, true), bothShops(e)...)
	told.check(t, e, 0)
}

// TestRedisLuaNotOnDisk: InnoDB shows a commit to others before it has flushed
// it. A buyer whose order another process has written is told of it only when
// the record outlives the database.
func TestRedisLuaNotOnDisk(t *testing.T) {
	server := localservertest.MySQL(t)
	e := openOn(t, server.URL(), enginetest.Local(t).URLs.Redis)
	restock(t, e, "apple", 10)
	// A mover whose COMMIT takes as long as one likes: nothing is flushed.
	for _, set := range []string{"innodb_flush_log_at_timeout = 2700", "innodb_flush_log_at_trx_commit = 0"} {
		if err := e.DB.Exec("SET GLOBAL " + set).Error; err != nil {
			t.Fatal(err)
		}
	}
	here, elsewhere := newRedisLua(e, patient), newRedisLua(e, patient)
	o := apple("late", 1)
	o.IdempotencyKey = "late"
	entry, err := here.enter(t.Context(), o, time.Now())
	if err == nil {
		err = elsewhere.Drain(t.Context(), "apple")
	}
	if err == nil {
		err = e.DB.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1").Error
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := <-here.await(o, entry).answer; a.err != nil {
		t.Fatal(a.err)
	}
	if err := errors.Join(server.Kill(), server.Start()); err != nil {
		t.Fatal(err)
	}
	var records int64
	eventually(t, "the database is back", func() bool {
		return e.DB.Model(&purchase.Record{}).Where("idempotency_key = ?", "late").Count(&records).Error == nil
	})
	if records != 1 {
		t.Errorf("the buyer was told that it is sold, and there are %d records", records)
	}
}

// TestRedisLuaForgets: Redis forgets all, five times in the rush. Orders under way
// may be lost, and their buyers are told unknown; what is left can be bought.
func TestRedisLuaForgets(t *testing.T) {
	server, err := localserver.StartRedis(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	e := openOn(t, enginetest.Local(t).URLs.DB, server.URL())
	restock(t, e, "apple", 600)
	told := newAnswers()
	told.rush(t, 600, 5, 50, func() error { return e.Redis.FlushAll(t.Context()).Err() }, bothShops(e)...)
	told.crowd(t, "later", 4, bothShops(e)...)
	told.check(t, e, 0)
}

// TestRedisLuaAndConditional: another strategy sells the same units meanwhile.
func TestRedisLuaAndConditional(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 300)
	other := NewConditional(Deps{DB: e.DB, Settings: Settings{Wait: soon}, Now: time.Now})
	told := newAnswers()
	told.crowd(t, "buyer", 16, newRedisLua(e, soon), other)
	told.check(t, e, 0)
	if len(told.Unknown) > 0 {
		t.Errorf("told unknown, with nothing amiss: %v", told.Unknown)
	}
}

// processEnv has the servers for a child, see TestRedisLuaProcess.
const processEnv = "TEST_REDIS_LUA_PROCESS"

// TestRedisLuaProcess is the crowd of another process, when it is started by
// another test. It begins when its standard input ends.
func TestRedisLuaProcess(t *testing.T) {
	servers := strings.Fields(os.Getenv(processEnv))
	if len(servers) != 2 {
		return
	}
	e := openOn(t, servers[0], servers[1])
	fmt.Println("ready")
	if _, err := io.ReadAll(os.Stdin); err != nil {
		t.Fatal(err)
	}
	told := newAnswers()
	told.crowd(t, "child", 16, newRedisLua(e, soon))
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(text))
}

// child is a shop in a process of its own.
type child struct {
	*exec.Cmd
	lines *bufio.Reader
	begin func() error
}

func startChild(t *testing.T, e *engine.Engine) *child {
	t.Helper()
	c := &child{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRedisLuaProcess$")}
	c.Env = append(os.Environ(), processEnv+"="+e.URLs.DB+" "+e.URLs.Redis)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.begin = in.Close
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if line, err := c.lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return c
}

// TestRedisLuaTwoProcesses: a crowd in each of two is served exactly.
func TestRedisLuaTwoProcesses(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 300)
	c := startChild(t, e)
	if err := c.begin(); err != nil {
		t.Fatal(err)
	}
	told := newAnswers()
	told.crowd(t, "parent", 16, newRedisLua(e, soon))
	there := newAnswers()
	line, err := c.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, there)
	}
	if err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	t.Logf("%d sales in this process, %d in the other", len(told.Sold), len(there.Sold))
	maps.Copy(told.Sold, there.Sold)
	maps.Copy(told.No, there.No)
	maps.Copy(told.Unknown, there.Unknown)
	told.check(t, e, 0)
	if len(told.Sold) != 300 || len(told.Unknown) != 0 {
		t.Errorf("%d sold of 300, %d unknown", len(told.Sold), len(told.Unknown))
	}
}

// TestRedisLuaCrash: a shop is killed when its orders are admitted and none is
// written. The workers of two other shops write each once.
func TestRedisLuaCrash(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 100)
	c := startChild(t, e)
	release := keepRow(t, e)
	if err := c.begin(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "16 orders", func() bool { return e.Redis.XLen(t.Context(), redisLuaStream("apple")).Val() == 16 })
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // "signal: killed", as asked
	release()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { newRedisLua(e, patient).Work(ctx) })
	}
	eventually(t, "an empty stream", func() bool {
		return e.Redis.XLen(ctx, redisLuaStream("apple")).Val() == 0 && e.Redis.SCard(ctx, redisLuaProducts).Val() == 0
	})
	stop()
	workers.Wait()
	newAnswers().check(t, e, 100-16)
	mustHaveStock(t, e, 100-16)
}

// mustHaveStock compares the stock in Redis, as the next buyer finds it.
func mustHaveStock(t *testing.T, e *engine.Engine, want int64) {
	t.Helper()
	if _, err := newRedisLua(e, patient).loadStock(t.Context(), "apple", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := e.Redis.Get(t.Context(), redisLuaStock("apple")).Int64(); got != want || err != nil {
		t.Errorf("Redis has %d, %v; want %d", got, err, want)
	}
}

// TestRedisLuaAskAgain: told unknown, a buyer asks by what he was told, of
// another shop, and gets the sale that was made.
func TestRedisLuaAskAgain(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	release := keepRow(t, e)
	o := apple("ann", 2)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	unknown := make(chan error, 1)
	go func() {
		_, err := newRedisLua(e, patient).Buy(ctx, o)
		unknown <- err
	}()
	eventually(t, "the order", func() bool { return e.Redis.XLen(t.Context(), redisLuaStream("apple")).Val() == 1 })
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
	go func() { // while it is under way
		receipt, err := again.Buy(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		answer <- receipt
	}()
	release()
	first := <-answer
	second, err := again.Buy(t.Context(), o)
	if err != nil || first.ID == 0 || second.ID != first.ID || !second.Replayed {
		t.Errorf("%+v, then %+v, %v", first, second, err)
	}
	told := newAnswers()
	told.Sold["ann"] = first
	told.check(t, e, 3)
}

// lossy loses one run of a script, or one other command: before it is done, or
// its answer.
type lossy struct {
	command string // name, or a script's hash
	done    bool   // it was done, and the answer lost
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

// lossyShop has connections to Redis of its own.
func lossyShop(t *testing.T, e *engine.Engine, l *lossy) *RedisLua {
	t.Helper()
	options := *e.Redis.(*redis.Client).Options()
	own := redis.NewClient(&options)
	t.Cleanup(func() { _ = own.Close() })
	own.AddHook(l)
	shop := newRedisLua(e, patient)
	for _, script := range []*redis.Script{shop.admit, shop.load, shop.settle} { // so that each goes by its hash
		if err := script.Load(t.Context(), e.Redis).Err(); err != nil {
			t.Fatal(err)
		}
	}
	shop.deps.Redis = own
	return shop
}

// TestRedisLuaLostCommand: whatever command is lost, or its answer, a buyer who
// asks again has one sale, and one who is refused keeps no unit.
func TestRedisLuaLostCommand(t *testing.T) {
	e := enginetest.Local(t)
	scripts := newRedisLua(e, patient)
	for name, command := range map[string]string{
		"admit": scripts.admit.Hash(), "load": scripts.load.Hash(), "settle": scripts.settle.Hash(), "xrange": "xrange",
	} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s done %t", name, done), func(t *testing.T) {
				restock(t, e, "apple", 5)
				l := &lossy{command: command, done: done}
				shop := purchase.NewIdempotent(lossyShop(t, e, l), e.DB)
				told := newAnswers()
				o := apple("ann", 1)
				o.IdempotencyKey = fmt.Sprintf("key %s %t", name, done)
				if err := told.buy(t.Context(), shop, o); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the loss", l.lost.Load) // a buyer is told before his entry is taken out
				told.check(t, e, 4)
				mustHaveStock(t, e, 4)

				// The database has one unit, Redis takes it for four.
				if err := e.DB.Exec("UPDATE product SET amount = 1, stocked = 2 WHERE name = 'apple'").Error; err != nil {
					t.Fatal(err)
				}
				l.lost.Store(false)
				bob := apple("bob", 3)
				bob.IdempotencyKey = o.IdempotencyKey + " bob"
				if err := told.buy(t.Context(), shop, bob); !errors.Is(err, purchase.ErrSoldOut) {
					t.Fatalf("%v, want sold out", err)
				}
				told.check(t, e, 1)
				mustHaveStock(t, e, 1)
			})
		}
	}
}

// TestRedisLuaRefusedOnce: whoever settles a refused order, how often ever, its
// units come back once.
func TestRedisLuaRefusedOnce(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	shop := newRedisLua(e, patient)
	if _, err := shop.enter(t.Context(), apple("ann", 3), time.Now()); err != nil {
		t.Fatal(err)
	}
	other := NewConditional(Deps{DB: e.DB, Settings: DefaultSettings(), Now: time.Now})
	if _, err := other.Buy(t.Context(), apple("bob", 4)); err != nil {
		t.Fatal(err)
	}
	entries := e.Redis.XRange(t.Context(), redisLuaStream("apple"), "-", "+").Val()
	if len(entries) != 1 {
		t.Fatalf("%d entries", len(entries))
	}
	for range 2 { // a mover that decides and crashes, and another that finds the entry again
		o, err := readEntry("apple", entries[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shop.write(t.Context(), "apple", []admitted{o}); err != nil {
			t.Fatal(err)
		}
	}
	o, _ := readEntry("apple", entries[0])
	for range 2 {
		if err := shop.remove(t.Context(), "apple", []admitted{o}); err != nil {
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

// TestRedisLuaRefusedFound: a refused order that was not taken out of the stream,
// since its mover crashed, gives its units back to who finds it.
func TestRedisLuaRefusedFound(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	l := &lossy{}
	shop := lossyShop(t, e, l)
	l.command = shop.settle.Hash()
	if _, err := shop.enter(t.Context(), apple("ann", 3), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := e.DB.Exec("UPDATE product SET amount = 1, stocked = 1 WHERE name = 'apple'").Error; err != nil {
		t.Fatal(err)
	}
	if err := shop.Drain(t.Context(), "apple"); !errors.Is(err, io.EOF) {
		t.Fatalf("%v, want that the command was lost", err)
	}
	newAnswers().check(t, e, 1)
	mustHaveStock(t, e, 1)
}

// TestRedisLuaTooLow: Redis remembers too little. Nobody is told that it is sold
// out, but for a second.
func TestRedisLuaTooLow(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	if err := e.Redis.Set(t.Context(), redisLuaStock("apple"), 0, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := newRedisLua(e, patient).Buy(t.Context(), apple("ann", 5)); err != nil {
		t.Error(err)
	}
	newAnswers().check(t, e, 0)
}

// TestRedisLuaClockBehind: Redis gives ids that are before the last one seen. The
// first such order is unknown, and later ones are sold.
func TestRedisLuaClockBehind(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	shop := newRedisLua(e, patient)
	if _, err := shop.Buy(t.Context(), apple("ann", 1)); err != nil {
		t.Fatal(err)
	}
	if err := e.DB.Exec("UPDATE product SET last_entry = '9999999999999-7' WHERE name = 'apple'").Error; err != nil {
		t.Fatal(err)
	}
	if _, err := shop.Buy(t.Context(), apple("bob", 1)); !errors.Is(err, purchase.ErrUnknownOutcome) {
		t.Errorf("%v, want that it is unknown", err)
	}
	if err := shop.Drain(t.Context(), "apple"); err != nil { // bob was told before his entry is gone
		t.Fatal(err)
	}
	if _, err := shop.Buy(t.Context(), apple("cec", 1)); err != nil {
		t.Error(err)
	}
	newAnswers().check(t, e, 3)
	mustHaveStock(t, e, 3)
}

// TestRedisLuaProductsKept: an order that comes when a worker has just seen the
// last one go is found by the next worker.
func TestRedisLuaProductsKept(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	l := &lossy{}
	shop := lossyShop(t, e, l)
	l.command = shop.settle.Hash()
	l.before = func() {
		if _, err := newRedisLua(e, patient).enter(t.Context(), apple("ann", 1), time.Now()); err != nil {
			t.Error(err)
		}
	}
	if err := shop.Drain(t.Context(), "apple"); err != nil {
		t.Fatal(err)
	}
	if known := e.Redis.SIsMember(t.Context(), redisLuaProducts, "apple").Val(); !known || !l.lost.Load() {
		t.Errorf("the product is known: %t; the order came: %t", known, l.lost.Load())
	}
	newAnswers().check(t, e, 4)
	if known := e.Redis.SIsMember(t.Context(), redisLuaProducts, "apple").Val(); known {
		t.Error("the product is kept though it has no orders")
	}
}

// TestRedisLuaResetWaits: a restock does not overtake an order on its way into the
// database.
func TestRedisLuaResetWaits(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	shop := newRedisLua(e, patient)
	if _, err := shop.enter(t.Context(), apple("ann", 1), time.Now()); err != nil {
		t.Fatal(err)
	}
	release := keepRow(t, e)
	drained := make(chan error, 1)
	go func() { drained <- shop.Drain(t.Context(), "apple") }()
	eventually(t, "a batch under way", func() bool {
		if !shop.moving.TryAcquire(everybody) {
			return true
		}
		shop.moving.Release(everybody)
		return false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := shop.Reset(ctx, "apple"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that it waits", err)
	}
	release()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if err := shop.Reset(t.Context(), "apple"); err != nil {
		t.Error(err)
	}
	newAnswers().check(t, e, 4)
}

// TestRedisLuaKeyOfAnother: a key that has a sale of another product is no sale of
// this one, and takes no unit of it.
func TestRedisLuaKeyOfAnother(t *testing.T) {
	e := enginetest.Local(t)
	restock(t, e, "apple", 5)
	restock(t, e, "pear", 5)
	shop := newRedisLua(e, patient)
	o := apple("ann", 1)
	o.IdempotencyKey = "key"
	pear := o
	pear.Product = "pear"
	if _, err := shop.Buy(t.Context(), pear); err != nil {
		t.Fatal(err)
	}
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
