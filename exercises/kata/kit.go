package kata

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// Context is context.Context.
type Context = context.Context

// A Store is a client of one Redis.
type Store = redis.UniversalClient

// A Kit contains the servers and settings of one process of the shop. Other processes have kits of
// their own, with connections to the same servers.
type Kit struct {
	DB     *gorm.DB              // table product: name, amount, version, fence; table purchase_history
	Redis  redis.UniversalClient // one server
	Stores []Store               // Redis and, in exercise 12, a second, independent server
	TTL    time.Duration         // lifetime of a lease without renewal

	deps deps.Deps
	dogs *sync.Map // watchdogs by token, started by Renew
}

// NewKit makes a kit. The judge calls it.
func NewKit(d deps.Deps) Kit {
	k := Kit{DB: d.DB, Redis: d.Redis, TTL: d.Settings.LeaseTTL, deps: d, dogs: &sync.Map{}}
	if d.Redis != nil {
		k.Stores = append([]Store{d.Redis}, d.Redlock...)
	}
	return k
}

// Sleep pauses between two attempts to get something that another buyer has. It returns ErrBusy when the buyer
// has waited long enough. A learner must pause with Sleep only. The judge decides which buyer goes next, and
// does not notice other pauses.
func (k Kit) Sleep(ctx Context) error {
	k.deps.Sleep(ctx, k.deps.Settings.Poll)
	return context.Cause(ctx)
}

// Now returns the current time.
func (k Kit) Now() time.Time { return k.deps.Now() }

// Token returns a random text that is unique.
func (k Kit) Token() string { return rand.Text() }

// Sell is the naive sale of every tutorial: read, check, compute, write, record. It is correct only
// while no other buyer sells the product.
func (k Kit) Sell(ctx Context, o Order) (Receipt, error) {
	return k.deps.Section(Name).Sell(ctx, o, 0)
}

// Name marks the records of an exercise.
const Name = "yours"

// Read reads the product's row without a lock. The parameter `db` is a transaction or kit.DB.
func (k Kit) Read(ctx Context, db *gorm.DB, name string) (Product, error) {
	p, err := product.ByName(db.WithContext(ctx), name)
	return p, purchase.DatabaseError(ctx, "read the stock", err)
}

// Check returns ErrSoldOut if p has fewer units than the order asks for.
func (k Kit) Check(p Product, o Order) error { return purchase.Check(p, o) }

// Exec sends one statement with db and returns the number of changed rows.
func (k Kit) Exec(ctx Context, db *gorm.DB, statement string, values ...any) (rows int64, _ error) {
	done := db.WithContext(ctx).Exec(statement, values...)
	return done.RowsAffected, purchase.DatabaseError(ctx, "write", done.Error)
}

// InTx runs fn in one transaction and commits it. If fn returns an error, InTx rolls back and
// returns the error.
func (k Kit) InTx(ctx Context, fn func(tx *gorm.DB) error) error {
	return purchase.InTx(ctx, k.DB, fn)
}

// Record inserts the record of a sale in the transaction that takes the units. The parameter `left` is the
// stock after the sale, for the receipt.
func (k Kit) Record(ctx Context, tx *gorm.DB, o Order, left int64) (Receipt, error) {
	r := Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Left: left, Strategy: Name}
	err := purchase.Insert(ctx, tx, o.IdempotencyKey, k.deps.Now(), &r)
	return r, err
}

// Sold returns the receipt of the sale with an idempotency key, or nil.
func (k Kit) Sold(ctx Context, db *gorm.DB, key string) (*Receipt, error) {
	sold, err := purchase.SoldUnder(db.WithContext(ctx), []string{key})
	if r, found := sold[key]; found && err == nil {
		return &r, nil
	}
	return nil, purchase.DatabaseError(ctx, "look up the key", err)
}

// deleteIfMine is a Lua script that releases a lock: it compares the token and deletes the key in one step.
const deleteIfMine = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`

// DeleteIfMine deletes a key of Redis if its value is token, in one step on the server. It reports
// whether it did.
func (k Kit) DeleteIfMine(ctx Context, key, token string) (bool, error) {
	return k.DeleteIfMineIn(ctx, k.Redis, key, token)
}

// DeleteIfMineIn does the same as DeleteIfMine in one of the Kit's Stores.
func (k Kit) DeleteIfMineIn(ctx Context, store Store, key, token string) (deleted bool, err error) {
	release := func() {
		if dog, renews := k.dogs.LoadAndDelete(token); renews {
			dog.(*watchdog).stop()
		}
		deleted, err = k.deleteIfMine(ctx, store, key, token)
	}
	if k.deps.Unlock == nil {
		release()
	} else {
		k.deps.Unlock(ctx, release)
	}
	return deleted, err
}

func (k Kit) deleteIfMine(ctx Context, store Store, key, token string) (bool, error) {
	n, err := redis.NewScript(deleteIfMine).Run(ctx, store, []string{key}, token).Int()
	if err != nil {
		return false, fmt.Errorf("release: %w", deps.Failed(deps.Redis, err))
	}
	return n == 1, nil
}

// renewIfMine is a Lua script that renews a lock: it compares the token and extends the TTL in one step.
const renewIfMine = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`

// Renew starts a watchdog, which renews the lease after each third of TTL until DeleteIfMine ends the lease.
func (k Kit) Renew(ctx Context, key, token string) {
	dog := &watchdog{}
	dog.mu.Lock()
	defer dog.mu.Unlock()
	dog.timer = k.deps.RenewAfter(ctx, k.TTL/3, func(ctx context.Context) {
		redis.NewScript(renewIfMine).Run(ctx, k.Redis, []string{key}, token, k.TTL.Milliseconds())
		dog.again(k.TTL / 3)
	})
	k.dogs.Store(token, dog)
}

// A watchdog is the timer of the renewals of one lease.
type watchdog struct {
	mu    sync.Mutex
	timer rlock.Timer
	over  bool // the lease has ended
}

func (w *watchdog) again(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.timer.Reset(after)
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// Scripts returns the scripts that a Kit sends.
func Scripts() []Script {
	return []Script{
		{SHA: redisscript.SHA(deleteIfMine), Name: "delete if mine", Role: Release, Lock: 1, Refused: []string{"0"}},
		{SHA: redisscript.SHA(renewIfMine), Name: "renew if mine", Role: Renew, Lock: 1, Refused: []string{"0"}},
	}
}
