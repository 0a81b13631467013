package lockstrategy

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

// Queue sells a product to one buyer at a time.
//
//   - Summary: one goroutine per product sells one order after another (conditional update)
//   - Guarantees: The statement keeps the stock right, for any number of processes. The queue only reduces
//     contention in the database.
//   - Breaks when: never; a crash loses only purchases without an answer
//   - Cost: Each process sells one order of a product at a time. The round trips follow one another, which
//     limits the throughput.
//   - Source: Thompson, "Single Writer Principle", Mechanical Sympathy, 2011 (the single writer); its UPDATE is
//     that of `conditional`
type Queue struct {
	deps    Deps
	retrier waiting.Retrier

	mu        sync.Mutex
	byProduct map[string][]*queued // an entry exists while a goroutine sells the product
}

type queued struct {
	ctx    context.Context
	order  purchase.Order
	since  time.Time
	answer chan answer // has capacity 1, so that the seller never waits for a buyer
}

type answer struct {
	receipt purchase.Receipt
	err     error
}

// NewQueue returns the strategy. It needs only the database.
func NewQueue(d Deps) *Queue {
	return &Queue{deps: d, retrier: waiting.NewRetrier(d, waiting.AnyRounds), byProduct: map[string][]*queued{}}
}

// Buy implements purchase.Strategy.
func (s *Queue) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	b := &queued{ctx: ctx, order: o, since: start, answer: make(chan answer, 1)}
	s.deps.Report(ctx, deps.Event{Kind: deps.Waiting, Strategy: "queue", Product: o.Product, Purchaser: o.Purchaser})
	s.join(b)
	select {
	case a := <-b.answer:
		return a.receipt, a.err
	case <-ctx.Done():
		if s.leave(b) {
			return purchase.Receipt{}, fmt.Errorf("queue: %w", context.Cause(ctx))
		}
	}
	a := <-b.answer // the goroutine is selling to this buyer, and stops when ctx ends
	return a.receipt, a.err
}

// join adds the buyer to the queue, and starts the product's goroutine if there is none.
func (s *Queue) join(b *queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := b.order.Product
	line, selling := s.byProduct[name]
	s.byProduct[name] = append(line, b)
	if !selling {
		go s.sell(name)
	}
}

// leave removes the buyer from the queue. It returns false if the selling goroutine has already taken the
// buyer.
func (s *Queue) leave(b *queued) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := b.order.Product
	i := slices.Index(s.byProduct[name], b)
	if i < 0 {
		return false
	}
	s.byProduct[name] = slices.Delete(s.byProduct[name], i, i+1)
	return true
}

// sell serves one product until its queue is empty.
func (s *Queue) sell(name string) {
	for {
		b := s.next(name)
		if b == nil {
			return
		}
		var a answer
		a.err = s.retrier.RetryRefused(b.ctx, name, func(ctx context.Context, _ time.Time) error {
			a.receipt, a.err = takeIfLeft(ctx, s.deps, b.order, "queue", b.since)
			return a.err
		})
		b.answer <- a
	}
}

// next removes the first buyer from the queue. If the queue is empty, it deletes the queue and returns nil.
func (s *Queue) next(name string) *queued {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.byProduct[name]
	if len(line) == 0 {
		delete(s.byProduct, name)
		return nil
	}
	s.byProduct[name] = line[1:]
	return line[0]
}

func queueEntry() Entry {
	return Entry{
		Name: "queue", Family: inProcess,
		New: func(d Deps) purchase.Strategy { return NewQueue(d) },
		Traits: Traits{
			WaitsFor: WaitWorker,
		},
		// Two processes write concurrently, and PostgreSQL refuses the second of two conflicting writes.
	}.holds().withPromiseAboveReadCommitted([]promise.Condition{promise.TwoProducts, promise.TwoProcesses}, "")
}
