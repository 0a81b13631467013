package lockstrategy

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

func redisEntry() Entry {
	return Entry{
		Name: "redis", Family: redisHistory,
		Summary:    "token + Lua release (bsm/redislock)",
		Guarantees: "one buyer of a product at a time, while the section ends within the TTL; nobody frees the lock of another",
		BreaksWhen: "section or pause longer than the TTL; Redis forgets",
		HowItBreaks: "The section, or a pause inside it, outlives the TTL: the next buyer comes in, and nothing stops the first one's write. " +
			"Or Redis forgets: a restart, or a failover to a replica without the key.",
		Cost: "two round trips to Redis a buy; a crashed holder blocks the product for the rest of the TTL",
		Source: `Redis documentation, "Distributed Locks with Redis", section "Correct Implementation with a Single Instance"; the lock is github.com/bsm/redislock. ` +
			`What it cannot give: Kleppmann, "How to do distributed locking", 2016`,
		Needs: []Need{NeedsRedis},
		Scripts: append(redisscript.Redislock(), redisscript.Description{
			SHA: deleteOwn.Hash(), Name: "delete if mine", Role: redisscript.Release, Lock: 1, Refused: []string{"0"},
		}),
		New: func(d Deps) purchase.Strategy { return NewRedis(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: sizing.ByKey},
			Aliases:  []string{"Y"},
			Leased:   true,
			Confirms: true,
			WaitsFor: ALock,
			CaughtBy: map[string]string{"ExpiredLease": twoHolders},
		},
	}.holdsBut(leaseBreaks())
}

// NewRedis needs the database and one Redis.
func NewRedis(d Deps) *Locked { return lease.NewLocked(d, "redis", newRedisLocker(d, "redis")) }

// NewRedisLocker is the lock of redis by itself, without a section.
func NewRedisLocker(d Deps) Locker { return newRedisLocker(d, "redis") }

type redisLocker struct {
	strategy string
	redis    redis.UniversalClient
	locks    *redislock.Client
	ttl      time.Duration
	poller   waiting.Poller
	replicas int // that must have a grant
}

func newRedisLocker(d Deps, strategy string) *redisLocker {
	var client redislock.RedisClient = d.Redis
	if d.Settings.Replicas > 0 {
		client = rediskey.Confirming{UniversalClient: d.Redis, Replicas: d.Settings.Replicas, Within: d.Settings.ReplicateWithin()}
	}
	return &redisLocker{strategy, d.Redis, redislock.New(client), d.Settings.LeaseTTL, waiting.NewPoller(d), d.Settings.Replicas}
}

func (r *redisLocker) Lock(ctx context.Context, product string) (lease.Lease, error) {
	var (
		lock  *redislock.Lock
		asked time.Time
	)
	err := r.poller.Obtain(ctx, product, func() (bool, error) {
		var err error
		asked = time.Now()
		token := rand.Text()
		asking, confirmed := rediskey.Asking(ctx)
		lock, err = r.locks.Obtain(asking, rediskey.Of(r.strategy, product), r.ttl, &redislock.Options{Token: token}) // one try
		if errors.Is(err, redislock.ErrNotObtained) {
			return false, nil
		}
		if err != nil {
			go r.undo(asked, rediskey.Of(r.strategy, product), token)
		}
		if err == nil && r.replicas > 0 && !confirmed() {
			return false, r.giveBack(ctx, asked, lock)
		}
		return err == nil, deps.FailedFor(ctx, deps.Redis, err)
	})
	if err != nil {
		return nil, err
	}
	return &redisLease{lock, product, asked, r.poller}, nil
}

// giveBack releases a grant that too few replicas have. The buyer may try again, unless
// Redis has failed.
func (r *redisLocker) giveBack(ctx context.Context, asked time.Time, lock *redislock.Lock) error {
	err := lock.Release(context.WithoutCancel(ctx))
	switch {
	case errors.Is(err, redislock.ErrLockNotHeld): // it has run out, or went with its server
		return nil
	case err != nil: // else nobody could buy the product for the rest of the TTL
		go r.undo(asked, lock.Key(), lock.Token())
	}
	return deps.Failed(deps.Redis, err)
}

// deleteOwn is the release of the source, for a lock whose grant was not heard of.
var deleteOwn = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

// undo takes back a try whose answer was lost, or whose release failed: a Redis that hung
// may still execute it, and would then grant the lock to a buyer that has gone. undo gives up when the
// lease would have run out by itself, or the shop has closed its client.
func (r *redisLocker) undo(asked time.Time, key, token string) {
	for time.Since(asked) < r.ttl {
		err := deleteOwn.Run(context.Background(), r.redis, []string{key}, token).Err()
		if err == nil || errors.Is(err, redis.ErrClosed) { // done, or the shop has ended
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Reset deletes the key, of any holder.
func (r *redisLocker) Reset(ctx context.Context, product string) error {
	return deps.Failed(deps.Redis, r.redis.Del(ctx, rediskey.Of(r.strategy, product)).Err())
}

type redisLease struct {
	lock    *redislock.Lock
	product string
	asked   time.Time // just before the grant: the lease ends no earlier than one TTL from then
	poller  waiting.Poller
}

func (l *redisLease) Token() string { return l.lock.Token() }

func (l *redisLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx) // the library does not watch the lease
}

func (l *redisLease) Release(ctx context.Context) error {
	defer l.poller.Released(l.product)
	err := l.lock.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return lease.ErrNotHeld
	}
	return deps.Failed(deps.Redis, err)
}
