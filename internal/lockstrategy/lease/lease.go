// Package lease defines a lease, the right to sell a product for a limited time. Under a lease it runs the
// naive critical section: read the stock, check it, write it.
//
//	Locked.Buy: waiting -> Locker.Lock -> acquired -> section -> Release
//
// Most lock strategies are a Locked, each with its own Locker. There are two invariants. The lease is released
// after the commit and never before it, even if the buyer has disconnected. The critical section's context ends
// when the lease is known to be lost. Package waiting has the ways to wait for a lock.
package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// A Locker grants a lease on a product.
type Locker interface {
	// Lock waits for the lease. When ctx ends, it returns the cause of ctx, even if the lock's server was
	// silent. It returns a *purchase.Unavailable if the server refused the command or the connection broke.
	Lock(ctx context.Context, product string) (Lease, error)
}

// A Lease is the right to sell one product until it is released or expires. It belongs to one
// buyer. Its methods are not safe for concurrent use.
type Lease interface {
	// Context returns a child of ctx that ends with cause purchase.ErrLockLost when the lease is
	// known to be lost. If the lock cannot know that, the child ends with ctx.
	Context(ctx context.Context) (context.Context, context.CancelFunc)
	// Token is the text by which the lock identifies its holder; "" if there is none.
	Token() string
	// Release gives the lease back. It returns ErrNotHeld if the lease had expired. Another buyer may then have
	// been in the critical section at the same time.
	Release(ctx context.Context) error
}

// ErrNotHeld means that the buyer no longer held the lease when it released it.
var ErrNotHeld = errors.New("the lease had expired before its release")

// A Fencer is a Lease with a fencing token: a number greater than that of any earlier lease on the product.
type Fencer interface {
	Lease
	Fence() int64
}

// UntilLost implements Lease.Context for a lock that closes the channel `lost` when the lease is lost.
func UntilLost(ctx context.Context, lost <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	select {
	case <-lost: // already lost: no statement may run before the goroutine below notices
		cancel(purchase.ErrLockLost)
		return ctx, func() {}
	default:
	}
	go func() {
		select {
		case <-lost:
			cancel(purchase.ErrLockLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Locked is a strategy that runs the naive critical section under a lease.
type Locked struct {
	deps    deps.Deps
	locker  Locker
	section purchase.Section
	sell    func(ctx context.Context, lease Lease, o purchase.Order, waited time.Duration) (purchase.Receipt, error)
}

// NewLocked returns the named strategy, which runs the critical section under a lease of l.
func NewLocked(d deps.Deps, name string, l Locker) *Locked {
	s := &Locked{deps: d, locker: l, section: d.Section(name)}
	s.sell = func(ctx context.Context, _ Lease, o purchase.Order, waited time.Duration) (purchase.Receipt, error) {
		return s.section.Sell(ctx, o, waited)
	}
	return s
}

// NewFenced does the same as NewLocked, but the database also checks the lease's fencing token at each write.
// Every lease of l must be a Fencer.
func NewFenced(d deps.Deps, name string, l Locker) *Locked {
	s := NewLocked(d, name, l)
	s.sell = func(ctx context.Context, lease Lease, o purchase.Order, waited time.Duration) (purchase.Receipt, error) {
		receipt, err := s.section.SellFenced(ctx, o, lease.(Fencer).Fence(), waited)
		if source, ok := l.(tokenSource); ok && errors.Is(err, purchase.ErrLockLost) {
			err = errors.Join(err, catchUp(ctx, d, source, o.Product))
		}
		return receipt, err
	}
	return s
}

// A tokenSource is a Locker whose server counts the fencing tokens. After the server has lost its data,
// RaiseToken makes the next tokens higher than atLeast.
type tokenSource interface {
	RaiseToken(ctx context.Context, product string, atLeast int64) error
}

// catchUp raises the tokens above the greatest token that the database has seen.
func catchUp(ctx context.Context, d deps.Deps, source tokenSource, name string) error {
	ctx, cancel := d.Releasing(ctx)
	defer cancel()
	p, err := product.ByName(d.DB.WithContext(ctx), name)
	if err != nil {
		return err
	}
	return source.RaiseToken(ctx, name, p.Fence)
}

// Buy implements purchase.Strategy.
func (s *Locked) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	event := deps.Event{Strategy: s.section.Strategy, Product: o.Product, Purchaser: o.Purchaser}
	report := func(kind deps.EventKind) {
		e := event
		e.Kind = kind
		s.deps.Report(ctx, e)
	}
	report(deps.Waiting)
	lease, err := s.locker.Lock(ctx, o.Product)
	if err != nil {
		return purchase.Receipt{}, fmt.Errorf("lock: %w", err)
	}
	event.Token = lease.Token()
	report(deps.Acquired)
	lost := sync.OnceFunc(func() { report(deps.Lost) }) // called while the section runs, or at the release

	unlock := func() { // after the commit, never before it
		// The event is sent before the release. So if the times from Acquired to Released of two
		// buyers overlap, the lock had two holders.
		report(deps.Released)
		ctx, cancel := s.deps.Releasing(ctx)
		defer cancel()
		if err := lease.Release(ctx); errors.Is(err, ErrNotHeld) {
			lost() // the sale is valid, since it was committed before
		}
	}
	defer func() {
		if s.deps.Unlock != nil {
			s.deps.Unlock(ctx, unlock)
		} else {
			unlock()
		}
	}()
	waited := s.deps.Now().Sub(start)
	ctx, end := lease.Context(ctx)
	defer end()
	defer onLoss(ctx, lost)()
	return s.sell(ctx, lease, o, waited)
}

// onLoss calls the function `lost` when the section's context ends because the lease is lost. The caller
// must call `stop` before it ends the section's context in the normal way.
func onLoss(ctx context.Context, lost func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), purchase.ErrLockLost) {
			lost()
		}
	})
}

// Unlocks does nothing. The method marks a strategy that releases its lock through the hook deps.Deps.Unlock.
func (s *Locked) Unlocks() {}

// Reset implements purchase.Resetter: it frees the product's lock, even if another client holds it.
func (s *Locked) Reset(ctx context.Context, product string) error {
	if r, ok := s.locker.(purchase.Resetter); ok {
		return r.Reset(ctx, product)
	}
	return nil
}

// Close closes the locker, if it can be closed.
func (s *Locked) Close() error {
	if c, ok := s.locker.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
