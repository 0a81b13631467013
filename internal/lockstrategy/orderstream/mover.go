package orderstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

// allBatches exceeds the number of batches that run at once.
const allBatches = 1 << 30

// moverPause is how long a mover waits after a batch that found no order or failed.
const moverPause = 10 * time.Millisecond

// A Mover moves the orders of one strategy from the stream in Redis to the database. It serves the buyers
// of this process, and orders left behind by crashed processes. Movers of several processes take turns:
// each locks the product's row for its batch. A Mover is safe for concurrent use.
type Mover struct {
	Keys
	deps   deps.Deps
	settle *redis.Script

	moving *semaphore.Weighted // of weight allBatches; a batch takes 1, and a restock takes all

	mu      sync.Mutex
	waiting map[string]waiters // by product; an entry exists while a goroutine moves the product's orders
}

// NewMover returns the mover of the named strategy. It runs nothing before Await, Work or Drain.
func NewMover(d deps.Deps, strategy string) *Mover {
	return &Mover{
		Keys: Keys{strategy}, deps: d, settle: redis.NewScript(Settle),
		moving: semaphore.NewWeighted(allBatches), waiting: map[string]waiters{},
	}
}

// An Answer is the result for a buyer whose order the database has decided on.
type Answer struct {
	Receipt purchase.Receipt
	Err     error
}

// A Waiter is a buyer of this process whose order was admitted.
type Waiter struct {
	Answer <-chan Answer // has capacity 1

	order  purchase.Order
	entry  string
	answer chan<- Answer
}

// waiters holds the waiting buyers of one product. While there are any, a goroutine moves the product's orders.
type waiters map[*Waiter]struct{}

// Await returns a Waiter that receives the answer for an entry of the stream. It starts a goroutine that
// moves the product's orders, unless one is running.
func (m *Mover) Await(o purchase.Order, entry string) *Waiter {
	answer := make(chan Answer, 1)
	w := &Waiter{Answer: answer, order: o, entry: entry, answer: answer}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[o.Product] == nil {
		m.waiting[o.Product] = waiters{}
		go m.move(o.Product)
	}
	m.waiting[o.Product][w] = struct{}{}
	return w
}

// Leave removes a buyer that has given up. Its order is moved all the same.
func (m *Mover) Leave(w *Waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting[w.order.Product], w)
}

// move runs until no buyer waits.
func (m *Mover) move(product string) {
	for m.awaited(product) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*m.deps.Settings.Wait)
		found, err := m.moveBatch(ctx, product)
		cancel()
		if err != nil || found == 0 {
			m.deps.Sleep(context.Background(), moverPause) // another process is moving the order, or Redis has lost it, or a server is down
		}
	}
}

// awaited reports whether a buyer waits. If none does, it ends the mover's goroutine.
func (m *Mover) awaited(product string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting[product]) == 0 {
		delete(m.waiting, product)
		return false
	}
	return true
}

// moves reports whether a goroutine of this process moves the product's orders.
func (m *Mover) moves(product string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting[product] != nil
}

// Work moves orders for which no buyer waits any more: the buyer gave up, or the shop crashed. It does so
// at once, and then every second until ctx ends.
func (m *Mover) Work(ctx context.Context) {
	for {
		for _, name := range m.ordered(ctx) {
			if !m.moves(name) { // otherwise two goroutines would read the same orders
				_ = m.Drain(ctx, name) // a failed attempt is repeated in a second
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// ordered returns the products that have orders, except those on Redis nodes that do not answer.
func (m *Mover) ordered(ctx context.Context) (products []string) {
	sets := make([]*redis.StringSliceCmd, Parts)
	_, _ = m.deps.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range sets {
			sets[i] = p.SMembers(ctx, m.products(i))
		}
		return nil
	})
	for _, set := range sets {
		products = append(products, set.Val()...)
	}
	return products
}

// Drain moves a product's orders until none is left.
func (m *Mover) Drain(ctx context.Context, product string) error {
	for {
		found, err := m.moveBatch(ctx, product)
		if err != nil {
			return err
		}
		if found == 0 {
			return m.remove(ctx, product, nil) // removes the product from the set, if there is still no order
		}
	}
}

// Forget deletes the product's stock and orders from Redis, for a restock. It waits for the batches of this
// process, since no order from before a restock may be sold after it.
func (m *Mover) Forget(ctx context.Context, product string) error {
	if err := m.moving.Acquire(ctx, allBatches); err != nil {
		return fmt.Errorf("wait for the orders that are being written: %w", context.Cause(ctx))
	}
	defer m.moving.Release(allBatches)
	return deps.Failed(deps.Redis, m.deps.Redis.Del(ctx, m.Stock(product), m.Stream(product), m.Orders(product)).Err())
}
