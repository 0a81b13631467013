// Package rediskey is a lock that is one key of one Redis, polled. Locks of this kind
// differ only in the commands that take and free the key; those are the strategy's.
package rediskey

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
)

// Of is the key of a strategy's lock on a product.
func Of(strategy, product string) string { return "shop:lock:" + strategy + ":{" + product + "}" }

// Commands take and free a key.
type Commands struct {
	// Take tries once. The token is handed to Free.
	Take func(ctx context.Context, key string) (token string, taken bool, err error)
	// Free gives the key back. lease.ErrNotHeld when it sees that another holder, or
	// none, has it. nil deletes the key of any holder.
	Free func(ctx context.Context, key, token string) error
}

// A Locker is a lease.Locker. Its leases do not notice that they are lost: their
// contexts end with the buyer's. It is safe for concurrent use.
type Locker struct {
	strategy string
	redis    redis.UniversalClient
	poller   waiting.Poller
	commands Commands
}

// NewLocker makes the lock of the named strategy from its commands.
func NewLocker(d deps.Deps, strategy string, c Commands) *Locker {
	l := &Locker{strategy: strategy, redis: d.Redis, poller: waiting.NewPoller(d), commands: c}
	if c.Free == nil {
		l.commands.Free = func(ctx context.Context, key, _ string) error { return l.delete(ctx, key) }
	}
	return l
}

// Lock is lease.Locker.Lock.
func (l *Locker) Lock(ctx context.Context, product string) (lease.Lease, error) {
	held := &held{locker: l, product: product}
	err := l.poller.Obtain(ctx, product, func() (taken bool, err error) {
		held.token, taken, err = l.commands.Take(ctx, Of(l.strategy, product))
		return taken, deps.FailedFor(ctx, deps.Redis, err)
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// Reset deletes the key, of any holder.
func (l *Locker) Reset(ctx context.Context, product string) error {
	return l.delete(ctx, Of(l.strategy, product))
}

func (l *Locker) delete(ctx context.Context, key string) error {
	return deps.Failed(deps.Redis, l.redis.Del(ctx, key).Err())
}

// held is a lease.Lease.
type held struct {
	locker  *Locker
	product string
	token   string
}

func (h *held) Token() string { return h.token }

func (h *held) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx) // none of these watches its lease
}

func (h *held) Release(ctx context.Context) error {
	defer h.locker.poller.Released(h.product)
	return h.locker.commands.Free(ctx, Of(h.locker.strategy, h.product), h.token)
}
