// Package rlocker makes a lease.Locker from a lock of package rlock. That lock already waits, renews itself
// and passes to the next waiter.
package rlocker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// A Locker is a lock of rlock on one Redis. Close it after use: it keeps a subscription open.
type Locker struct {
	strategy string
	client   *rlock.Client
	kind     func(c *rlock.Client, name string) *rlock.Lock
}

// New returns the locks of the named strategy. The parameter `kind` is a method of rlock.Client that
// creates a lock.
func New(d deps.Deps, strategy string, kind func(*rlock.Client, string) *rlock.Lock) *Locker {
	return &Locker{strategy, NewClient(d, d.Redis), kind}
}

// NewClient returns the client of rlock for one server.
func NewClient(d deps.Deps, server redis.UniversalClient) *rlock.Client {
	options := []rlock.ClientOption{rlock.WatchdogTimeout(d.Settings.LeaseTTL), rlock.RenewalTimer(d.RenewAfter)}
	if n := d.Settings.Replicas; n > 0 && server == d.Redis {
		options = append(options, rlock.Replicas(n, d.Settings.ReplicateWithin()))
	}
	if d.Clock != nil {
		options = append(options, rlock.Timekeeper(d.Clock))
	}
	return rlock.New(server, options...)
}

// Name returns the lock's key. It replaces a product's name by a hash if the key would exceed rlock's limit
// of 512 bytes, or if the name contains a brace. On a Redis Cluster, a brace would put the several keys of
// one lock into different slots.
func Name(strategy, product string) string {
	if len(product) > 400 || strings.ContainsAny(product, "{}") {
		sum := sha256.Sum256([]byte(product))
		product = hex.EncodeToString(sum[:])
	}
	return "shop:lock:" + strategy + ":" + product
}

func (l *Locker) of(product string) *rlock.Lock { return l.kind(l.client, Name(l.strategy, product)) }

// Lock implements lease.Locker.
func (l *Locker) Lock(ctx context.Context, product string) (lease.Lease, error) {
	held, err := l.of(product).Lock(ctx)
	if err != nil {
		return nil, deps.FailedFor(ctx, deps.Redis, err)
	}
	return single{held}, nil
}

// RaiseToken raises the fencing tokens of a product after Redis has lost them.
func (l *Locker) RaiseToken(ctx context.Context, product string, atLeast int64) error {
	return l.of(product).RaiseToken(ctx, atLeast)
}

// Reset frees the product's lock, for any holder.
func (l *Locker) Reset(ctx context.Context, product string) error {
	_, err := l.of(product).ForceUnlock(ctx)
	return deps.Failed(deps.Redis, err)
}

// Close ends the subscription to the messages that wake waiters.
func (l *Locker) Close() error { return l.client.Close() }

type single struct{ lease *rlock.Lease }

// Token returns the fencing token of a fenced lock. For any other lock it returns the holder's name.
func (s single) Token() string {
	if token := s.lease.Token(); token != 0 {
		return strconv.FormatInt(token, 10)
	}
	return s.lease.Holder()
}

// Fence implements lease.Fencer. It returns 0 if the lock is not fenced.
func (s single) Fence() int64 { return s.lease.Token() }

func (s single) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return Within(ctx, s.lease.Context())
}

func (s single) Release(ctx context.Context) error { return Released(deps.Redis, s.lease.Unlock(ctx)) }

// Within returns a child of ctx. It ends with cause ErrLockLost when rlock ends `held`, the lease's
// context, because the lock is lost.
func Within(ctx, held context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(held, func() {
		if errors.Is(context.Cause(held), rlock.ErrLost) {
			cancel(purchase.ErrLockLost)
		}
	})
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// Released converts the error of an unlock into that of lease.Lease.Release.
func Released(server string, err error) error {
	if errors.Is(err, rlock.ErrNotHeld) {
		return lease.ErrNotHeld
	}
	return deps.Failed(server, err)
}
