// redis-lua: the stock is in Redis; one script checks it, takes the units and
// appends the order to a stream. A worker moves the orders to the database in
// batches, and the buyer is told when its record is there.
//
// Guarantees:  the database has the last word: it sells under the row's lock and
//              only what it has. Each order is written once, by the entry that
//              the product's row has seen last and by its key. Sold is said
//              when the record is durable. Orders in the stream outlive a restart
//              of the shop and of the database, and of Redis with its
//              append-only file.
// Breaks when: never. Redis forgets: the buyers under way are told unknown, and
//              the next one loads the stock anew.
// Cost:        two round trips to Redis and six statements a batch; a buyer who
//              comes too late costs one round trip. A buyer whose order is
//              admitted cannot take it back: told unknown, it may be sold later.
// Source:      Alibaba Cloud, Tair documentation, "Build a business system that
//              can handle flash sales" (script, queue, asynchronous write); the
//              exactly-once part is a position kept with the data, as in Kleppmann,
//              Designing Data-Intensive Applications, 2017, chapter 11, "Fault
//              tolerance"; the batch is group commit.
//
// This file admits; redis_lua_worker.go moves.

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

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

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

	mu     sync.Mutex
	movers map[string]*mover // an entry is there while a goroutine moves the product's orders
}

// NewRedisLua needs the database and one Redis.
func NewRedisLua(d Deps) *RedisLua {
	return &RedisLua{
		deps: d, admit: redis.NewScript(admitLua), load: redis.NewScript(loadLua), settle: redis.NewScript(settleLua),
		movers: map[string]*mover{},
	}
}

const redisLuaProducts = "shop:orders:redis-lua"

func redisLuaStock(product string) string  { return "shop:stock:redis-lua:{" + product + "}" }
func redisLuaStream(product string) string { return "shop:orders:redis-lua:{" + product + "}" }
func redisLuaKeys(product string) string   { return "shop:keys:redis-lua:{" + product + "}" }

// Buy is purchase.Strategy.Buy. ErrUnknownOutcome when the order was admitted
// and its record was not seen in time; the error names the key to ask again by.
func (s *RedisLua) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, start, cancel := s.deps.patience(ctx)
	defer cancel()
	if o.IdempotencyKey == "" {
		o.IdempotencyKey = "redis-lua-" + strings.ToLower(rand.Text())
	}
	entry, err := s.enter(ctx, o, start)
	if err != nil {
		return purchase.Receipt{}, err
	}
	s.deps.observe(ctx, Event{Kind: Waiting, Strategy: "redis-lua", Product: o.Product, Purchaser: o.Purchaser, Token: entry})
	answer := s.await(o, entry)
	select {
	case a := <-answer:
		if a.err == nil && (a.receipt.Purchaser != o.Purchaser || a.receipt.Amount != o.Amount) {
			return purchase.Receipt{}, purchase.ErrKeyReused
		}
		return a.receipt, a.err
	case <-ctx.Done():
		s.leave(o.Product, entry, answer)
		return purchase.Receipt{}, fmt.Errorf("%w: entry %s is not in the database yet (%w); to ask again send the same order with Idempotency-Key: %s and purchaser: %s",
			purchase.ErrUnknownOutcome, entry, context.Cause(ctx), o.IdempotencyKey, o.Purchaser)
	}
}

// enter admits the order and returns the id of its entry in the stream.
func (s *RedisLua) enter(ctx context.Context, o purchase.Order, called time.Time) (string, error) {
	keys := []string{redisLuaStock(o.Product), redisLuaStream(o.Product), redisLuaProducts, redisLuaKeys(o.Product)}
	for {
		entry, err := s.admit.Run(ctx, s.deps.Redis, keys, o.Amount, o.IdempotencyKey, o.Purchaser, called.UnixMicro(), o.Product).Text()
		switch {
		case err != nil && neverSent(err):
			return "", serverError("redis", err)
		case err != nil:
			return "", fmt.Errorf("admit: %w: %w", purchase.ErrUnknownOutcome, serverError("redis", err))
		case entry == "":
			return "", purchase.ErrSoldOut
		case entry != "?":
			return entry, nil
		}
		if err := s.loadStock(ctx, o.Product); err != nil {
			return "", err
		}
	}
}

// loadStock copies the stock from the database, if it is still not there.
func (s *RedisLua) loadStock(ctx context.Context, name string) error {
	p, err := product.ByName(s.deps.DB.WithContext(ctx), name)
	if err != nil {
		return purchase.DatabaseError(ctx, "read the stock", err)
	}
	err = s.load.Run(ctx, s.deps.Redis, []string{redisLuaStock(name), redisLuaStream(name)}, p.Amount, p.LastEntry).Err()
	return serverError("redis", err)
}

// neverSent tells whether a command cannot have reached the server.
func neverSent(err error) bool {
	var network *net.OpError
	var refused redis.Error // the server's own word, a script that failed: nothing was written after it
	return errors.As(err, &network) && network.Op == "dial" || errors.As(err, &refused) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) // it did not get a connection
}

// Reset forgets the product's stock and its orders; the next buyer loads the
// stock again.
func (s *RedisLua) Reset(ctx context.Context, product string) error {
	return serverError("redis", s.deps.Redis.Del(ctx, redisLuaStock(product), redisLuaStream(product), redisLuaKeys(product)).Err())
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
