// Package rediskey makes a lock from one key of one Redis. Waiting buyers poll that key.
//
// A Lock has the commands that take and free the key. Wrappers do the rest: Undoing reverts an attempt whose
// answer was lost. Confirmed gives back a grant that too few replicas have. NewLocked polls the key and sells
// while it has it.
package rediskey

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
)

// A Lock has the commands that take and free a key.
type Lock interface {
	// Take tries once to take the key. The parameter `token` is new for each attempt, for a lock that stores a
	// token. Take returns nil without an error if another holder has the key.
	Take(ctx context.Context, key, token string) (lease.Lease, error)
}

// NewLocked returns the named strategy. It sells while it holds the lock l.
func NewLocked(d deps.Deps, strategy string, l Lock) *lease.Locked {
	return lease.NewLocked(d, strategy, NewLocker(d, strategy, l))
}

// NewLocker returns the lock of the named strategy alone, without the code that sells.
func NewLocker(d deps.Deps, strategy string, l Lock) lease.Locker {
	return waiting.NewPolling(d, key{strategy, d.Redis, l})
}

// key is the lock on a product, as a waiting.Trier: a lock that a buyer can try to take, but not wait for.
type key struct {
	strategy string
	redis    redis.UniversalClient
	lock     Lock
}

func (k key) of(product string) string { return "shop:lock:" + k.strategy + ":{" + product + "}" }

func (k key) Try(ctx context.Context, product string) (lease.Lease, error) {
	held, err := k.lock.Take(ctx, k.of(product), rand.Text())
	return held, deps.FailedFor(ctx, deps.Redis, err)
}

// Reset deletes the key, even if another client holds the lock.
func (k key) Reset(ctx context.Context, product string) error {
	return deps.Failed(deps.Redis, k.redis.Del(ctx, k.of(product)).Err())
}

// DeleteIfMine is the script with which Undoing deletes a key.
//
//go:embed delete_if_mine.lua
var DeleteIfMine string

// Undoing reverts each failed attempt to take a lock. A Redis that hung may still execute the attempt later,
// and would then grant the lock to a buyer that has left. The lock must store its token as the key's value.
type Undoing struct {
	Lock
	Redis  redis.UniversalClient
	TTL    time.Duration
	script *redis.Script
}

// NewUndoing wraps a lock whose keys expire after Settings.LeaseTTL.
func NewUndoing(d deps.Deps, l Lock) Undoing {
	return Undoing{l, d.Redis, d.Settings.LeaseTTL, redis.NewScript(DeleteIfMine)}
}

func (u Undoing) Take(ctx context.Context, key, token string) (lease.Lease, error) {
	asked := time.Now()
	held, err := u.Lock.Take(ctx, key, token)
	if err != nil {
		go u.undo(context.WithoutCancel(ctx), asked, key, token)
	}
	return held, err
}

// undo deletes the key and retries on errors. It gives up once the lease must have expired, or the shop has
// closed its client.
func (u Undoing) undo(ctx context.Context, asked time.Time, key, token string) {
	for time.Since(asked) < u.TTL {
		err := u.script.Run(ctx, u.Redis, []string{key}, token).Err()
		if err == nil || errors.Is(err, redis.ErrClosed) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Held is the lease of a key. It does not notice that the lock was lost: its context ends only with the
// buyer's.
type Held struct {
	Holder string // the value that names the holder; "" if there is none
	// Free gives the key back. It returns lease.ErrNotHeld if it sees that the key is gone or
	// has another holder.
	Free func(ctx context.Context) error
}

func (h Held) Token() string { return h.Holder }

func (h Held) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (h Held) Release(ctx context.Context) error {
	err := h.Free(ctx)
	if errors.Is(err, lease.ErrNotHeld) {
		return lease.ErrNotHeld
	}
	return deps.Failed(deps.Redis, err)
}
