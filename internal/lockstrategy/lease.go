package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// A Locker grants a lease on a product.
type Locker interface {
	// Lock waits for the lease until ctx ends, and then returns its cause.
	// *purchase.Unavailable when the lock's server did not do what it was asked,
	// even if ctx has ended meanwhile: a server that hangs is no busy lock.
	Lock(ctx context.Context, product string) (Lease, error)
}

// A Lease is the right to sell one product until it is released or runs out.
// It belongs to one buyer; its methods are not for several goroutines.
type Lease interface {
	// Context returns a child of ctx that ends, with cause
	// purchase.ErrLockLost, when the lease is known to be lost. Under a lock
	// that cannot know it, it ends with ctx.
	Context(ctx context.Context) (context.Context, context.CancelFunc)
	// Token is what the lock knows its holder by; "" where it has none.
	Token() string
	// Release gives the lease back. ErrNotHeld when it had run out: somebody
	// else may have been inside.
	Release(ctx context.Context) error
}

// ErrNotHeld: the lease was not ours any more when it was released.
var ErrNotHeld = errors.New("the lease had run out before its release")

// releaseTimeout bounds the release of a buyer that has hung up: its context
// has ended, but the lock must still be given back.
const releaseTimeout = 2 * time.Second

// Locked runs the naive section inside a lease. Every lock strategy is this,
// with a Locker of its own.
type Locked struct {
	deps    Deps
	locker  Locker
	section purchase.Section
	sell    func(ctx context.Context, lease Lease, o purchase.Order, waited time.Duration) (purchase.Receipt, error)
}

func newLocked(d Deps, name string, l Locker) *Locked {
	s := &Locked{deps: d, locker: l, section: d.section(name)}
	s.sell = func(ctx context.Context, _ Lease, o purchase.Order, waited time.Duration) (purchase.Receipt, error) {
		return s.section.Sell(ctx, o, waited)
	}
	return s
}

// A Fencer is a Lease with a fencing token: a number that no earlier lease on
// the product has reached.
type Fencer interface {
	Lease
	Fence() int64
}

// newFenced runs the section guarded by the lease's fencing token. Every lease
// of l must be a Fencer.
func newFenced(d Deps, name string, l Locker) *Locked {
	s := newLocked(d, name, l)
	s.sell = func(ctx context.Context, lease Lease, o purchase.Order, waited time.Duration) (purchase.Receipt, error) {
		receipt, err := s.section.SellFenced(ctx, o, lease.(Fencer).Fence(), waited)
		if source, ok := l.(tokenSource); ok && errors.Is(err, purchase.ErrLockLost) {
			err = errors.Join(err, d.catchUp(ctx, source, o.Product))
		}
		return receipt, err
	}
	return s
}

// A tokenSource can be told that greater tokens than its own have been seen: it
// has lost its data.
type tokenSource interface {
	RaiseToken(ctx context.Context, product string, atLeast int64) error
}

// catchUp raises the tokens above what the database has seen.
func (d Deps) catchUp(ctx context.Context, source tokenSource, name string) error {
	ctx, cancel := d.releasing(ctx)
	defer cancel()
	p, err := product.ByName(d.DB.WithContext(ctx), name)
	if err != nil {
		return err
	}
	return source.RaiseToken(ctx, name, p.Fence)
}

// Buy is purchase.Strategy.Buy.
func (s *Locked) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, start, cancel := s.deps.patience(ctx)
	defer cancel()
	event := Event{Kind: Waiting, Strategy: s.section.Strategy, Product: o.Product, Purchaser: o.Purchaser}
	s.deps.observe(ctx, event)
	lease, err := s.locker.Lock(ctx, o.Product)
	if err != nil {
		return purchase.Receipt{}, fmt.Errorf("lock: %w", err)
	}
	event.Kind, event.Token = Acquired, lease.Token()
	s.deps.observe(ctx, event)

	defer func() { // after the commit, never before it
		// Told before it is done: who sees acquired..released of two buyers
		// overlap has seen two holders, and not the order of two messages.
		event.Kind = Released
		s.deps.observe(ctx, event)
		ctx, cancel := s.deps.releasing(ctx)
		defer cancel()
		if err := lease.Release(ctx); errors.Is(err, ErrNotHeld) {
			event.Kind = Lost // the sale stands: its fate was decided by the commit
			s.deps.observe(ctx, event)
		}
	}()
	waited := s.deps.Now().Sub(start)
	ctx, end := lease.Context(ctx)
	defer end()
	return s.sell(ctx, lease, o, waited)
}

// Reset is purchase.Resetter.Reset: it frees the product's lock, whoever holds it.
func (s *Locked) Reset(ctx context.Context, product string) error {
	if r, ok := s.locker.(purchase.Resetter); ok {
		return r.Reset(ctx, product)
	}
	return nil
}

// Close ends what the locker has running, if it has something.
func (s *Locked) Close() error {
	if c, ok := s.locker.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// patience bounds a buy: the context that it returns ends with cause ErrBusy
// when Settings.Wait has passed since the call, wherever the buyer then stands,
// in front of a lock, of a connection or of a row. Only a COMMIT that was sent
// is waited for. start is the time of the call.
func (d Deps) patience(ctx context.Context) (_ context.Context, start time.Time, cancel context.CancelFunc) {
	ctx, cancel = context.WithTimeoutCause(ctx, d.Settings.Wait, purchase.ErrBusy)
	return ctx, d.Now(), cancel
}
