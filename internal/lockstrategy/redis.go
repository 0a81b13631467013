package lockstrategy

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
)

// redisLock stores a token in a key with a TTL, and deletes the key by a script that compares the token first.
//
//	                                     lease.Locked       locks, sells, unlocks
//	                                     waiting.Polling    one buyer of the process asks again and again
//	                                     rediskey           names the key, reverts an attempt without an answer
//	SET key token NX PX ttl              redisLock.Take     asks once
//	SELECT, UPDATE, INSERT               purchase.Section   the naive section
//	if GET key == token then DEL key     redisLease.Release
//
// Nothing stops the writes of a holder whose key has expired.
//
//   - Summary: token + Lua release (bsm/redislock)
//   - Guarantees: Mutual exclusion per product while every critical section ends within the TTL. No client
//     releases another holder's lock.
//   - Breaks when: the section or a pause outlasts the TTL; Redis loses the key
//   - How it breaks: The section, or a pause inside it, outlasts the TTL. The next buyer takes the lock,
//     and nothing stops the first buyer's write. Or Redis loses the key: by a restart, or by a failover to
//     a replica without the key.
//   - Cost: One purchase takes two round trips to Redis. A crashed holder blocks the product for the rest of the
//     TTL.
//   - Source: Redis documentation, "Distributed Locks with Redis", section "Correct Implementation with a Single
//     Instance"; the lock is github.com/bsm/redislock. Its limits: Kleppmann, "How to do distributed locking",
//     2016
type redisLock struct {
	locks *redislock.Client
	ttl   time.Duration
}

func newRedis(d Deps) purchase.Strategy { return rediskey.NewLocked(d, "redis", newRedisLock(d)) }

// NewRedisLocker returns the lock of `redis` alone, without the code that sells.
func NewRedisLocker(d Deps) Locker { return rediskey.NewLocker(d, "redis", newRedisLock(d)) }

func newRedisLock(d Deps) rediskey.Lock {
	lock := redisLock{redislock.New(rediskey.Client(d)), d.Settings.LeaseTTL}
	return rediskey.NewUndoing(d, rediskey.Confirm(d, lock))
}

func (r redisLock) Take(ctx context.Context, key, token string) (lease.Lease, error) {
	lock, err := r.locks.Obtain(ctx, key, r.ttl, &redislock.Options{Token: token}) // tries once
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return redisLease{rediskey.Held{Holder: token, Free: func(ctx context.Context) error {
		err := lock.Release(ctx)
		if errors.Is(err, redislock.ErrLockNotHeld) {
			return lease.ErrNotHeld
		}
		return err
	}}, lock}, nil
}

// redisLease is a lease that can be renewed. The library does not do so by itself.
type redisLease struct {
	rediskey.Held
	lock *redislock.Lock
}

func redisEntry() Entry {
	return Entry{
		Name: "redis", Family: redisLocks,
		Needs:   []Need{NeedsRedis},
		Scripts: append(redisscript.Redislock(), redisscript.Parse(rediskey.DeleteIfMine)),
		New:     newRedis,
		Traits: Traits{
			Aliases:  []string{"Y"},
			Leased:   true,
			Confirms: true,
			WaitsFor: WaitLock,
			CaughtBy: map[string]string{"ExpiredLease": wantTwoHolders},
		},
	}.holdsExcept(leaseBreaks())
}
