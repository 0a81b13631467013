package kata

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// Context is context.Context.
type Context = context.Context

// A Store is a client of one Redis.
type Store = redis.UniversalClient

// A Kit is what one process of the shop has. Other processes have kits of their own, with
// connections to the same servers.
type Kit struct {
	DB     *gorm.DB              // table product: name, amount, version, fence; table purchase_history
	Redis  redis.UniversalClient // one server
	Stores []Store               // Redis and, in exercise 12, a second server, which knows nothing of the first
	TTL    time.Duration         // how long a lease lasts unless it is renewed

	deps deps.Deps
}

// NewKit is for the judge.
func NewKit(d deps.Deps) Kit {
	k := Kit{DB: d.DB, Redis: d.Redis, TTL: d.Settings.LeaseTTL, deps: d}
	if d.Redis != nil {
		k.Stores = append([]Store{d.Redis}, d.Redlock...)
	}
	return k
}

// Sleep is the pause between two tries for something that another buyer has. Its error,
// ErrBusy, says that the buyer has waited long enough. Where the judge decides who goes
// next, it is how it learns that a try was in vain: pauses of another kind are not seen.
func (k Kit) Sleep(ctx Context) error {
	k.deps.Sleep(ctx, k.deps.Settings.Poll)
	return context.Cause(ctx)
}

// Now is the time.
func (k Kit) Now() time.Time { return k.deps.Now() }

// Token is a random text that nobody else has.
func (k Kit) Token() string { return rand.Text() }

// Sell is the naive sale of every tutorial: read, check, compute, write, record. It is right
// as long as nobody else sells the product meanwhile.
func (k Kit) Sell(ctx Context, o Order) (Receipt, error) {
	return k.deps.Section(Name).Sell(ctx, o, 0)
}

// Name is what the records of an exercise are marked with.
const Name = "yours"

// Read reads the product's row, in db: a transaction, or kit.DB. It locks nothing.
func (k Kit) Read(ctx Context, db *gorm.DB, name string) (Product, error) {
	p, err := product.ByName(db.WithContext(ctx), name)
	return p, purchase.DatabaseError(ctx, "read the stock", err)
}

// Check is ErrSoldOut where p, as it was read, has less than the order asks for.
func (k Kit) Check(p Product, o Order) error { return purchase.Check(p, o) }

// Exec sends one statement, in db, and returns how many rows it has changed.
func (k Kit) Exec(ctx Context, db *gorm.DB, statement string, values ...any) (rows int64, _ error) {
	done := db.WithContext(ctx).Exec(statement, values...)
	return done.RowsAffected, purchase.DatabaseError(ctx, "write", done.Error)
}

// InTx runs fn in one transaction and commits it. Where fn returns an error, it is rolled
// back, and the error is returned.
func (k Kit) InTx(ctx Context, fn func(tx *gorm.DB) error) error {
	return purchase.InTx(ctx, k.DB, fn)
}

// Record inserts the record of a sale, in the transaction that takes the units. left is what
// is left after it, for the receipt.
func (k Kit) Record(ctx Context, tx *gorm.DB, o Order, left int64) (Receipt, error) {
	r := Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Left: left, Strategy: Name}
	err := purchase.Insert(ctx, tx, o.IdempotencyKey, k.deps.Now(), &r)
	return r, err
}

// Sold is the receipt of the sale under an idempotency key; nil where there is none.
func (k Kit) Sold(ctx Context, db *gorm.DB, key string) (*Receipt, error) {
	sold, err := purchase.SoldUnder(db.WithContext(ctx), []string{key})
	if r, found := sold[key]; found && err == nil {
		return &r, nil
	}
	return nil, purchase.DatabaseError(ctx, "look up the key", err)
}

// deleteIfMine is a release that compares and deletes in one step.
const deleteIfMine = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`

// DeleteIfMine deletes a key of Redis if token is its value, in one step of the server's, and
// tells whether it did.
func (k Kit) DeleteIfMine(ctx Context, key, token string) (bool, error) {
	return k.DeleteIfMineIn(ctx, k.Redis, key, token)
}

// DeleteIfMineIn is DeleteIfMine in one of Stores.
func (k Kit) DeleteIfMineIn(ctx Context, store Store, key, token string) (bool, error) {
	n, err := redis.NewScript(deleteIfMine).Run(ctx, store, []string{key}, token).Int()
	if err != nil {
		return false, fmt.Errorf("release: %w", deps.Failed(deps.Redis, err))
	}
	return n == 1, nil
}

// Scripts are those that a Kit sends.
func Scripts() []Script {
	return []Script{{SHA: redisscript.SHA(deleteIfMine), Name: "delete if mine", Role: Release, Lock: 1, Refused: []string{"0"}}}
}
