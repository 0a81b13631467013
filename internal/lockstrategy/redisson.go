package lockstrategy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

func redissonEntry() Entry {
	return Entry{
		Name: "redisson", Family: redisHistory,
		Summary:     "Redisson's lock: reentrant hash, watchdog, pub/sub wake-up",
		Guarantees:  "as watchdog; first come, first served within a process. A Java service with the same lock name takes part",
		BreaksWhen:  "as watchdog",
		HowItBreaks: "The holder is paused for longer than the TTL and goes on with its commit. Or Redis forgets.",
		Cost: "one to two round trips to Redis a buy: the command that frees the lock hands it to the next buyer of the process. " +
			"One connection a process listens",
		Source:  `Redisson documentation, "Distributed locks and synchronizers", Lock; org.redisson.RedissonLock. The lock is rlock, in this repository`,
		Needs:   []Need{NeedsRedis},
		Scripts: redisscript.Rlock(),
		New:     func(d Deps) purchase.Strategy { return NewRedisson(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 1, TurnCommits: 1, Nodes: sizing.ByKey},
			InMemory: true,
			Confirms: true,
			Leased:   true,
			WaitsFor: ALock,
			Lock:     LockPromise{Renewed: true},
			CaughtBy: map[string]string{"ExpiredLease": twoHolders},
		},
	}.holdsBut(renewedLeaseBreaks())
}

// NewRedisson needs the database and one Redis. Close it when it is not needed
// any more: it listens.
func NewRedisson(d Deps) *Locked {
	return lease.NewLocked(d, "redisson", newRlockLocker(d, "redisson", (*rlock.Client).NewLock))
}

// rlockLocker is a lock of rlock on one Redis.
type rlockLocker struct {
	strategy string
	client   *rlock.Client
	lock     func(c *rlock.Client, name string) *rlock.Lock // of which kind
}

func newRlockLocker(d Deps, strategy string, kind func(*rlock.Client, string) *rlock.Lock) *rlockLocker {
	return &rlockLocker{strategy, newRlock(d, d.Redis), kind}
}

func newRlock(d Deps, server redis.UniversalClient) *rlock.Client {
	options := []rlock.ClientOption{rlock.WatchdogTimeout(d.Settings.LeaseTTL), rlock.RenewalTimer(d.RenewAfter)}
	if n := d.Settings.Replicas; n > 0 && server == d.Redis {
		options = append(options, rlock.Replicas(n, d.Settings.ReplicateWithin()))
	}
	if d.Clock != nil {
		options = append(options, rlock.Timekeeper(d.Clock))
	}
	return rlock.New(server, options...)
}

// rlockName is the lock's key, of at most the 512 bytes that rlock takes. A product whose
// name has a brace would decide on the slots of a Redis Cluster where its lock's keys are,
// and on each another (see rlock, "Redis Cluster").
func rlockName(strategy, product string) string {
	if len(product) > 400 || strings.ContainsAny(product, "{}") {
		sum := sha256.Sum256([]byte(product))
		product = hex.EncodeToString(sum[:])
	}
	return "shop:lock:" + strategy + ":" + product
}

func (r *rlockLocker) of(product string) *rlock.Lock {
	return r.lock(r.client, rlockName(r.strategy, product))
}

func (r *rlockLocker) Lock(ctx context.Context, product string) (lease.Lease, error) {
	lease, err := r.of(product).Lock(ctx)
	if err != nil {
		return nil, rlockError(ctx, deps.Redis, err)
	}
	return rlockLease{lease}, nil
}

// rlockError is the cause of ctx when the wait is over, and else says which server is
// down.
func rlockError(ctx context.Context, server string, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return cause
	}
	return deps.Failed(server, err)
}

// Reset frees the product's lock, of any holder.
func (r *rlockLocker) Reset(ctx context.Context, product string) error {
	_, err := r.of(product).ForceUnlock(ctx)
	return deps.Failed(deps.Redis, err)
}

// Close ends the subscription.
func (r *rlockLocker) Close() error { return r.client.Close() }

type rlockLease struct{ lease *rlock.Lease }

// Token is the fencing token where there is one, and else the holder's field.
func (l rlockLease) Token() string {
	if token := l.lease.Token(); token != 0 {
		return strconv.FormatInt(token, 10)
	}
	return l.lease.Holder()
}

// Fence is Fencer.Fence; 0 unless the lock is fenced.
func (l rlockLease) Fence() int64 { return l.lease.Token() }

func (l rlockLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(ctx, l.lease.Context())
}

// within returns a child of ctx that ends with cause ErrLockLost when rlock ends
// the lease's context because the lock is lost.
func within(ctx, lease context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(lease, func() {
		if errors.Is(context.Cause(lease), rlock.ErrLost) {
			cancel(purchase.ErrLockLost)
		}
	})
	return ctx, func() { stop(); cancel(context.Canceled) }
}

func (l rlockLease) Release(ctx context.Context) error {
	err := l.lease.Unlock(ctx)
	if errors.Is(err, rlock.ErrNotHeld) {
		return lease.ErrNotHeld
	}
	return deps.Failed(deps.Redis, err)
}
