package lockstrategy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/orderstream"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

var (
	//go:embed lua/admit.lua
	admitLua string
	//go:embed lua/load.lua
	loadLua string
)

const redisLua = "redis-lua"

// RedisLua admits buyers by a script in Redis. Its Mover, a background worker, writes the admitted orders
// to the database.
//
//   - Summary: Lua check-and-decrement + stream entry in one script; a worker writes to SQL in batches,
//     idempotent by entry id, and the database decides
//   - Guarantees: The database decides each sale, under the row's lock, and never sells more than the stock.
//     Each order is written once: the product's row stores the id of the last entry that was written, and the
//     order's key is unique. The buyer is answered "sold" when the record is durable. Orders in the stream
//     survive a restart of the shop, of the database, and of Redis with its append-only file.
//   - Breaks when: never; if Redis loses the stream, buyers in progress are answered "unknown"
//   - How it breaks: After a loss of the stream, the next buyer loads the stock again. The stock
//     in Redis may also be wrong, for example after a failover. If it is too high, the first order that the
//     database refuses corrects it. If it is too low, buyers are answered "sold out" for at most a second.
//   - Cost: A batch takes two round trips to Redis and six statements. A buyer that comes too late costs
//     one round trip and, once a second, a read of the database. A buyer cannot withdraw an admitted order:
//     the buyer is answered `unknown`, and the order may be sold later.
//   - Source: Alibaba Cloud, Tair documentation, "Build a business system that can handle flash sales" (script,
//     queue, asynchronous write); Kleppmann, Designing Data-Intensive Applications, 2017, chapter 11, "Fault
//     tolerance" (exactly once: a position kept with the data); the batch is group commit
type RedisLua struct {
	*orderstream.Mover
	deps        Deps
	admit, load *redis.Script

	mu     sync.Mutex
	raised map[string]time.Time // time of the last attempt by product, see raiseStock
}

// NewRedisLua returns the strategy. It needs the database and a Redis.
func NewRedisLua(d Deps) *RedisLua {
	return &RedisLua{
		Mover: orderstream.NewMover(d, redisLua), deps: d, raised: map[string]time.Time{},
		admit: redis.NewScript(admitLua), load: redis.NewScript(loadLua),
	}
}

// Buy implements purchase.Strategy. It returns ErrUnknownOutcome if the order may have been admitted and its
// record did not appear in time. The error names the Idempotency-Key with which the buyer can ask again.
func (s *RedisLua) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	if err := o.Check(); err != nil { // an invalid order in the stream would make every batch fail
		return purchase.Receipt{}, err
	}
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	if o.IdempotencyKey == "" {
		o.IdempotencyKey = deps.NewKey(redisLua)
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
	w := s.Await(o, entry)
	select {
	case a := <-w.Answer:
		return a.Receipt, a.Err
	case <-ctx.Done():
		s.Leave(w)
	}
	select {
	case a := <-w.Answer: // the answer came at the last moment
		return a.Receipt, a.Err
	default:
		return purchase.Receipt{}, fmt.Errorf("%w: entry %s is not in the database yet (%w)", purchase.ErrUnknownOutcome, entry, context.Cause(ctx))
	}
}

// enter admits the order and returns the id of its entry in the stream.
func (s *RedisLua) enter(ctx context.Context, o purchase.Order, called time.Time) (string, error) {
	for {
		entry, err := s.admit.Run(ctx, s.deps.Redis, s.All(o.Product), o.Amount, o.IdempotencyKey, o.Purchaser, called.UnixMicro(), o.Product).Text()
		switch {
		case err != nil && neverSent(err):
			return "", deps.FailedFor(ctx, deps.Redis, err)
		case err != nil:
			return "", fmt.Errorf("admit: %w: %w", purchase.ErrUnknownOutcome, deps.FailedFor(ctx, deps.Redis, err))
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

// loadStock copies the stock from the database to Redis if Redis has none. If the parameter `how` is
// "raise", it also replaces a lower stock in Redis. It reports whether it wrote the stock.
func (s *RedisLua) loadStock(ctx context.Context, name, how string) (bool, error) {
	p, err := product.ByName(s.deps.DB.WithContext(ctx), name)
	if err != nil {
		return false, purchase.DatabaseError(ctx, "read the stock", err)
	}
	loaded, err := s.load.Run(ctx, s.deps.Redis, s.All(name)[:2], p.Amount, p.LastEntry, how).Bool()
	return loaded, deps.FailedFor(ctx, deps.Redis, err)
}

// raiseStock copies the stock from the database if Redis has fewer units, at most once a second. raiseStock
// reports whether Redis has more units now. Redis has too few if it has restarted with data from before a
// restock. The same happens if a buyer of another process reads the stock before a restock and loads it
// afterwards.
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
	return err == nil && raised // without a database, Redis decides
}

// neverSent reports whether err proves that the admission wrote nothing to Redis.
func neverSent(err error) bool {
	var network *net.OpError
	var refused redis.Error // the server's own error reply
	return errors.As(err, &network) && network.Op == "dial" || errors.As(err, &refused) ||
		// The command got no connection.
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Reset implements purchase.Resetter: the next buyer loads the stock again. Reset waits for the batches
// that this process is writing to the database.
func (s *RedisLua) Reset(ctx context.Context, product string) error { return s.Forget(ctx, product) }

// KeepsStock implements purchase.StockKeeper, the mark of a strategy that keeps a copy of the stock.
func (s *RedisLua) KeepsStock() {}

func redisLuaEntry() Entry {
	return Entry{
		Name: redisLua, Family: redisStock,
		Needs:   []Need{NeedsRedis},
		Scripts: []redisscript.Description{redisscript.Parse(admitLua), redisscript.Parse(loadLua), redisscript.Parse(orderstream.Settle)},
		New:     func(d Deps) purchase.Strategy { return NewRedisLua(d) },
		Traits: Traits{
			WaitsFor: WaitWorker, WritesLater: true, InGroups: true, MaxBuyers: orderstream.BatchSize,
		},
	}.holds()
}
