package web

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// gathering makes the first buyers of each product reach a strategy at the same moment. Over HTTP
// they arrive too far apart to meet in the strategy's first use of a product. It is used only in a
// child process of shop verify --race. Products are never removed.
type gathering struct {
	purchase.Strategy
	buyers int // number of buyers that start together

	turn sync.Mutex // one product at a time, since another one would keep a processor busy

	mu        sync.Mutex
	byProduct map[string]*gathered
}

// gathered is the group of first buyers of one product.
type gathered struct {
	joined int
	all    chan struct{} // closed when all have arrived
	begun  atomic.Int64  // how many of the released buyers are running
	inLine atomic.Int64  // how many of them have reached their wait
	passed atomic.Int64
}

// Buy implements purchase.Strategy.
func (g *gathering) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	first, number := g.join(o.Product)
	if number > g.buyers {
		return g.Strategy.Buy(ctx, o)
	}
	if number == g.buyers {
		g.turn.Lock()
		close(first.all)
	}
	select {
	case <-first.all:
		pair(&first.begun)
	case <-ctx.Done(): // the others do not come
	}
	ctx = context.WithValue(ctx, gatheredKey{}, first)
	if int(first.passed.Add(1)) == g.buyers {
		g.turn.Unlock()
	}
	return g.Strategy.Buy(ctx, o)
}

// join returns the group of the product and this buyer's number among all buyers.
func (g *gathering) join(product string) (first *gathered, number int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first = g.byProduct[product]; first == nil {
		first = &gathered{all: make(chan struct{})}
		g.byProduct[product] = first
	}
	first.joined++
	return first, first.joined
}

// gatheredKey is the context key of a buyer's group.
type gatheredKey struct{}

// pairInLine pairs first buyers again when their strategy reports that they begin to wait, because
// the strategy uses its shared memory right after that point.
func pairInLine(ctx context.Context) {
	if first, ok := ctx.Value(gatheredKey{}).(*gathered); ok {
		pair(&first.inLine)
	}
}

// pairing is how long a buyer waits for another one.
const pairing = 5 * time.Millisecond

// pair returns at the same moment in two goroutines on two processors. Every other time it adds a
// random delay of some hundred nanoseconds. Waking a goroutine alone would take longer than most
// races last.
func pair(running *atomic.Int64) {
	two := running.Add(1)
	two += two % 2
	for start := time.Now(); running.Load() < two && time.Since(start) < pairing; {
		runtime.Gosched() // the other one may be waiting for this very processor
	}
	for start, pause := time.Now(), time.Duration(rand.IntN(2)*rand.IntN(500)); time.Since(start) < pause; {
	}
}
