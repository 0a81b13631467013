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

// gathering is a strategy whose first buyers of each product come in at the same moment:
// the way over HTTP sets them too far apart to meet at what the strategy makes then. It
// is off unless the shop is the child of a shop verify --race. Products are kept for ever.
type gathering struct {
	purchase.Strategy
	buyers int // that come in at once

	turn sync.Mutex // of the products: a processor that is busy with another is no use

	mu        sync.Mutex
	byProduct map[string]*gathered
}

// gathered are the first buyers of one product.
type gathered struct {
	joined int
	all    chan struct{} // closed when all are there
	begun  atomic.Int64  // of those that were let go, how many have
	inLine atomic.Int64  // of those, how many have come to what they wait for
	passed atomic.Int64
}

// Buy is purchase.Strategy.Buy.
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

// join returns the product's first buyers, and which of all buyers this one is.
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

// gatheredKey is the first buyers of a product in the context of each of them.
type gatheredKey struct{}

// pairInLine pairs first buyers again where their strategy reports that they begin to
// wait: what they meet at is just behind it.
func pairInLine(ctx context.Context) {
	if first, ok := ctx.Value(gatheredKey{}).(*gathered); ok {
		pair(&first.inLine)
	}
}

// pairing is how long a buyer waits for another one to run beside it.
const pairing = 5 * time.Millisecond

// pair returns at the same moment in two goroutines that run on two processors, every
// other time give or take some hundred nanoseconds, which are drawn anew: a goroutine that
// is woken takes longer to begin than most of what it could meet there.
func pair(running *atomic.Int64) {
	two := running.Add(1)
	two += two % 2
	for start := time.Now(); running.Load() < two && time.Since(start) < pairing; {
		runtime.Gosched() // the other one may stand in line for this very processor
	}
	for start, pause := time.Now(), time.Duration(rand.IntN(2)*rand.IntN(500)); time.Since(start) < pause; {
	}
}
