package purchase

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A SoldOutCheck answers late buyers before a strategy takes a lock for them. When a million buyers
// want 100 units, 999,900 of them take no lock.
//
//	request -> Idempotent -> SoldOutCheck -> Strategy
//	                             one unlocked read of the stock, shared by all waiting buyers
//
// It refuses a buyer only because of a read that began after the buyer arrived. A buyer that arrives during a
// read waits for the next read, since the current one may have begun before a restock. So at some moment of
// the request the stock was too low, and a strategy that read it then would have refused the buyer too. If
// the read fails or takes too long, the strategy decides.
//
// The check remembers no stock, only whether it has to read. It begins to read for a product after a
// strategy's first refusal, and stops when a read finds enough units.
//
// A SoldOutCheck is safe for concurrent use.
type SoldOutCheck struct {
	read     Left
	patience time.Duration

	mu    sync.Mutex
	asked map[string]*asked // for each product with a refused order or a read under way
}

// Left reads, without a lock, how many units of a product can still be sold. The result must not be below the
// stock that was committed at some moment of the read. Left returns ErrNoProduct if there is no such product.
type Left func(ctx context.Context, product string) (units int64, _ error)

type asked struct {
	from      int64 // the check reads the stock for orders of at least this many units; 0: for no order
	now, next *reading
}

// reading is one read. Its result is valid once the channel `done` is closed.
type reading struct {
	ctx  context.Context // has the values of the first buyer's context, but never ends
	done chan struct{}
	left int64
	err  error // why the stock is not known
	less error // ErrSoldOut for every order above the stock
}

// NewSoldOutCheck returns a check that reads the stock with the function `read`. It gives up a read after the
// duration `patience`.
func NewSoldOutCheck(read Left, patience time.Duration) *SoldOutCheck {
	return &SoldOutCheck{read: read, patience: patience, asked: map[string]*asked{}}
}

// Before puts the check before a strategy. Several strategies may share one check if they share the
// stock that it reads.
func (c *SoldOutCheck) Before(s Strategy) Strategy { return &checked{s, c} }

type checked struct {
	Strategy
	check *SoldOutCheck
}

// Buy implements Strategy.
func (s *checked) Buy(ctx context.Context, o Order) (Receipt, error) {
	if err := s.check.refuse(ctx, o); err != nil {
		return Receipt{}, err
	}
	receipt, err := s.Strategy.Buy(ctx, o)
	if OutcomeOf(err) == SoldOut {
		s.check.suspect(o)
	}
	return receipt, err
}

// A refuser is a strategy that can refuse a buyer of a sold-out product before the buyer waits. If
// refuse returns nil, the buyer must call Buy.
type refuser interface {
	refuse(ctx context.Context, o Order) error
}

func (s *checked) refuse(ctx context.Context, o Order) error { return s.check.refuse(ctx, o) }

// refuse returns nil for an order with an Idempotency-Key, since Buy may find an earlier sale under that key.
func (s *Idempotent) refuse(ctx context.Context, o Order) error {
	if r, ok := s.strategy.(refuser); ok && o.IdempotencyKey == "" {
		return r.refuse(ctx, o)
	}
	return nil
}

// refuse returns ErrSoldOut if the stock is below the order's amount. It returns nil if the stock is
// sufficient or unknown.
func (c *SoldOutCheck) refuse(ctx context.Context, o Order) error {
	r := c.join(ctx, o)
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return fmt.Errorf("wait for the stock to be read: %w", context.Cause(ctx))
	}
	if r.err == nil && r.left < o.Amount {
		return r.less
	}
	return nil
}

// join returns a read that begins after this call, or nil if the check does not read for the order.
func (c *SoldOutCheck) join(ctx context.Context, o Order) *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.asked[o.Product]
	if a == nil || a.from == 0 || o.Amount < a.from {
		return nil
	}
	if a.now == nil {
		a.now = newReading(ctx)
		go c.run(o.Product, a, a.now)
		return a.now
	}
	if a.next == nil {
		a.next = newReading(ctx)
	}
	return a.next
}

func newReading(ctx context.Context) *reading {
	return &reading{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
}

// run repeats the read until no buyer waits for a next one. A buyer that disconnects does not end
// the read for the others.
func (c *SoldOutCheck) run(product string, a *asked, r *reading) {
	for r != nil {
		ctx, cancel := context.WithTimeout(r.ctx, c.patience)
		r.left, r.err = c.read(ctx, product)
		cancel()
		r.less = fmt.Errorf("%w: %d left", ErrSoldOut, r.left)
		c.mu.Lock()
		a.note(r)
		if a.now, a.next = a.next, nil; a.now == nil && a.from == 0 {
			delete(c.asked, product)
		}
		next := a.now
		c.mu.Unlock()
		close(r.done)
		r = next
	}
}

// note stores, after the read r, for which amounts the check must read again.
func (a *asked) note(r *reading) {
	a.from = max(r.left, 0) + 1
	if r.err != nil || a.from > MaxAmount {
		a.from = 0
	}
}

// suspect makes the check read the stock for later orders of at least as many units as o.
func (c *SoldOutCheck) suspect(o Order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.asked[o.Product]
	if a == nil {
		a = &asked{}
		c.asked[o.Product] = a
	}
	if a.from == 0 || o.Amount < a.from {
		a.from = o.Amount
	}
}
