package lockstrategy

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/redisscript"
)

func redisLuaEntry() Entry {
	return Entry{
		Name: redisLua, Family: redisStock,
		Summary: "Lua check-and-decrement + stream entry in one script; a worker writes to SQL in batches, idempotent by entry id, the database has the last word",
		Guarantees: "the database has the last word: it sells under the row's lock and only what it has. Each order is written once, by the entry that the product's row has seen last and by its key. " +
			"Sold is answered when the record is durable. Orders in the stream outlive a restart of the shop and of the database, and of Redis with its append-only file",
		BreaksWhen: "never; Redis forgets: unknown",
		HowItBreaks: "Redis forgets: the buyers under way are answered unknown, and the next one loads the stock anew. Redis remembers wrongly, after a failover for instance: " +
			"too much ends with the first order that the database refuses; too little means that buyers are answered sold out, for a second at most.",
		Cost: "two round trips to Redis and six statements a batch; a buyer who comes too late costs one round trip, and once a second a read of the database. " +
			"A buyer whose order is admitted cannot take it back: it is answered unknown, and the order may be sold later",
		Source: `Alibaba Cloud, Tair documentation, "Build a business system that can handle flash sales" (script, queue, asynchronous write); ` +
			`the exactly-once part is a position kept with the data, as in Kleppmann, Designing Data-Intensive Applications, 2017, chapter 11, "Fault tolerance"; the batch is group commit`,
		Needs: []Need{NeedsRedis},
		Scripts: []redisscript.Description{
			{SHA: redisscript.SHA(admitLua), Name: "Admits one order: takes its units from the stock and appends it to the stream", Role: redisscript.Change},
			{SHA: redisscript.SHA(loadLua), Name: "Loads the stock from what the database says", Role: redisscript.Change},
			{SHA: redisscript.SHA(settleLua), Name: "Removes entries that the database has decided on", Role: redisscript.Change},
		},
		New:    func(d Deps) purchase.Strategy { return NewRedisLua(d) },
		Traits: Traits{WaitsFor: AWorker, WritesLater: true},
	}.holds()
}

var (
	//go:embed lua/admit.lua
	admitLua string
	//go:embed lua/load.lua
	loadLua string
	//go:embed lua/settle.lua
	settleLua string
)

// RedisLua admits in Redis and sells in the database.
type RedisLua struct {
	deps                Deps
	admit, load, settle *redis.Script

	moving *semaphore.Weighted // of weight everybody; each batch has 1 of it, a restock all

	mu      sync.Mutex
	waiting map[string]waiters   // by product; there while a goroutine moves its orders
	raised  map[string]time.Time // by product, see raiseStock
}

// everybody is more than there are batches at once.
const everybody = 1 << 30

// NewRedisLua needs the database and one Redis.
func NewRedisLua(d Deps) *RedisLua {
	return &RedisLua{
		deps: d, admit: redis.NewScript(admitLua), load: redis.NewScript(loadLua), settle: redis.NewScript(settleLua),
		moving: semaphore.NewWeighted(everybody), waiting: map[string]waiters{}, raised: map[string]time.Time{},
	}
}

// redisLua is the strategy's name.
const redisLua = "redis-lua"

const redisLuaProducts = "shop:orders:redis-lua"

func redisLuaStock(product string) string  { return "shop:stock:redis-lua:{" + product + "}" }
func redisLuaStream(product string) string { return "shop:orders:redis-lua:{" + product + "}" }
func redisLuaKeys(product string) string   { return "shop:keys:redis-lua:{" + product + "}" }

// redisLuaAll are the keys of a product, in the order in which the scripts take them.
func redisLuaAll(product string) []string {
	return []string{redisLuaStock(product), redisLuaStream(product), redisLuaProducts, redisLuaKeys(product)}
}

// Buy is purchase.Strategy.Buy. ErrUnknownOutcome when the order was admitted,
// or may have been, and its record was not seen in time; the error names the key
// to ask again by.
func (s *RedisLua) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	if o.IdempotencyKey == "" {
		o.IdempotencyKey = redisLua + "-" + strings.ToLower(rand.Text())
	}
	receipt, err := s.buy(ctx, o, start)
	if errors.Is(err, purchase.ErrUnknownOutcome) {
		err = fmt.Errorf("%w; to ask again send the same order with Idempotency-Key: %s and purchaser: %s", err, o.IdempotencyKey, o.Purchaser)
	}
	return receipt, err
}

func (s *RedisLua) buy(ctx context.Context, o purchase.Order, called time.Time) (purchase.Receipt, error) {
	entry, err := s.enter(ctx, o, called)
	if err != nil {
		return purchase.Receipt{}, err
	}
	s.deps.Report(ctx, deps.Event{Kind: deps.Waiting, Strategy: redisLua, Product: o.Product, Purchaser: o.Purchaser, Token: entry})
	w := s.await(o, entry)
	select {
	case a := <-w.answer:
		return a.receipt, a.err
	case <-ctx.Done():
		s.leave(w)
	}
	select {
	case a := <-w.answer: // it came at the last moment
		return a.receipt, a.err
	default:
		return purchase.Receipt{}, fmt.Errorf("%w: entry %s is not in the database yet (%w)", purchase.ErrUnknownOutcome, entry, context.Cause(ctx))
	}
}

// enter admits the order and returns the id of its entry in the stream.
func (s *RedisLua) enter(ctx context.Context, o purchase.Order, called time.Time) (string, error) {
	for {
		entry, err := s.admit.Run(ctx, s.deps.Redis, redisLuaAll(o.Product), o.Amount, o.IdempotencyKey, o.Purchaser, called.UnixMicro(), o.Product).Text()
		switch {
		case err != nil && neverSent(err):
			return "", deps.Failed(deps.Redis, err)
		case err != nil:
			return "", fmt.Errorf("admit: %w: %w", purchase.ErrUnknownOutcome, deps.Failed(deps.Redis, err))
		case entry == "?":
			if _, err := s.loadStock(ctx, o.Product, ""); err != nil {
				return "", err
			}
		case entry != "":
			return entry, nil
		case !s.raiseStock(ctx, o.Product):
			return "", purchase.ErrSoldOut
		}
	}
}

// loadStock copies the stock from the database, if it is still not there; with
// how "raise" also if it is lower. It reports whether it did.
func (s *RedisLua) loadStock(ctx context.Context, name, how string) (bool, error) {
	p, err := product.ByName(s.deps.DB.WithContext(ctx), name)
	if err != nil {
		return false, purchase.DatabaseError(ctx, "read the stock", err)
	}
	loaded, err := s.load.Run(ctx, s.deps.Redis, redisLuaAll(name)[:2], p.Amount, p.LastEntry, how).Bool()
	return loaded, deps.Failed(deps.Redis, err)
}

// raiseStock asks the database, once a second at most, whether Redis is right
// that there is too little, and reports whether there is more now. Redis may come
// back as it was before a restock, or a buyer of another process may have loaded
// the stock that he had read before it.
func (s *RedisLua) raiseStock(ctx context.Context, product string) bool {
	s.mu.Lock()
	now := s.deps.Now()
	due := now.Sub(s.raised[product]) > time.Second
	if due {
		s.raised[product] = now
	}
	s.mu.Unlock()
	if !due {
		return false
	}
	raised, err := s.loadStock(ctx, product, "raise")
	return err == nil && raised // without a database Redis has the say
}

// neverSent tells whether a command cannot have reached the server.
func neverSent(err error) bool {
	var network *net.OpError
	var refused redis.Error // the server's own word, a script that failed: nothing was written after it
	return errors.As(err, &network) && network.Op == "dial" || errors.As(err, &refused) ||
		// It did not get a connection.
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Reset forgets the product's stock and its orders; the next buyer loads the
// stock again. It waits for the batches of this process: an order from before a
// restock must not be sold after it.
func (s *RedisLua) Reset(ctx context.Context, product string) error {
	if err := s.moving.Acquire(ctx, everybody); err != nil {
		return fmt.Errorf("wait for the orders that are being written: %w", context.Cause(ctx))
	}
	defer s.moving.Release(everybody)
	return deps.Failed(deps.Redis, s.deps.Redis.Del(ctx, redisLuaStock(product), redisLuaStream(product), redisLuaKeys(product)).Err())
}

// KeepsStock is purchase.StockKeeper.KeepsStock.
func (s *RedisLua) KeepsStock() {}

// entryID is the id of a stream's entry: milliseconds and a number.
type entryID [2]uint64

func parseEntryID(text string) (id entryID, err error) {
	ms, seq, found := strings.Cut(text, "-")
	id[0], err = strconv.ParseUint(ms, 10, 64)
	if err == nil && found {
		id[1], err = strconv.ParseUint(seq, 10, 64)
	}
	return id, err
}

func (id entryID) after(other entryID) bool {
	return id[0] > other[0] || id[0] == other[0] && id[1] > other[1]
}
