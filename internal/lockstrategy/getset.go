package lockstrategy

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

// getSet stores the end of the lease in the key, by the client's clock. A buyer takes over a key
// whose time has passed.
//
//   - Summary: expiry in the value by the client's clock, taken over with GETSET
//   - Guarantees: Mutual exclusion per product while the clocks of all clients agree and every critical section
//     ends within the TTL. If two buyers take over at once, GETSET shows one of them that it came second.
//   - Breaks when: the clocks differ; the section outlasts the TTL; any client sends DEL
//   - How it breaks: B's clock is ahead by the TTL, and B takes over a lock that A holds. Or the section
//     outlasts the TTL. If two buyers take over at once, the second also overwrites the expiry of the
//     first. DEL does not check the owner.
//   - Cost: Taking the lock needs one to three round trips, and releasing it one.
//   - Source: Redis documentation, SETNX, "Handling deadlocks" (C1 to C5): this method is older than SET
//     with NX and EX
type getSet struct {
	redis redis.UniversalClient
	ttl   time.Duration
	now   func() time.Time
}

func newGetSet(d Deps) purchase.Strategy {
	return rediskey.NewLocked(d, "getset", getSet{d.Redis, d.Settings.LeaseTTL, d.Now})
}

func (s getSet) Take(ctx context.Context, key, _ string) (lease.Lease, error) {
	until := strconv.FormatInt(s.now().Add(s.ttl).UnixMilli(), 10)
	taken, err := s.redis.SetNX(ctx, key, until, 0).Result()
	if err == nil && !taken {
		taken, err = s.takeOver(ctx, key, until)
	}
	if err != nil || !taken {
		return nil, err
	}
	return rediskey.Held{Holder: until, Free: func(ctx context.Context) error { return s.redis.Del(ctx, key).Err() }}, nil
}

// takeOver replaces the expiry time in an expired key. If two buyers do so at once, the second one sees the
// time that the first one wrote, and does not get the lock.
func (s getSet) takeOver(ctx context.Context, key, until string) (taken bool, _ error) {
	seen, err := s.redis.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil // released in between: try again
	}
	if err != nil || !s.past(seen) {
		return false, err
	}
	before, err := s.redis.GetSet(ctx, key, until).Result()
	if errors.Is(err, redis.Nil) {
		return true, nil
	}
	return err == nil && s.past(before), err
}

func (s getSet) past(value string) bool {
	until, err := strconv.ParseInt(value, 10, 64)
	return err == nil && until <= s.now().UnixMilli()
}

func getsetEntry() Entry {
	return Entry{
		Name: "getset", Family: redisLocks,
		Needs: []Need{NeedsRedis},
		New:   newGetSet,
		Traits: Traits{
			Leased:   true,
			WaitsFor: WaitLock,
			Lock:     LockPromise{FreesAnothers: true},
			CaughtBy: map[string]string{"ExpiredLease": wantTwoHolders, "LostLease": wantFreedAnother, "ReleaseRace": wantFreedAnother},
		},
	}.holdsExcept(promise.Promise{ // as for a lease, except under `clock-jump`: the strategy does not use the lock server's clock
		promise.ClientClock: verdict.Oversold, promise.ShortLease: verdict.Oversold,
		promise.Pause: verdict.Oversold, promise.SlowSection: verdict.Oversold, promise.Partition: verdict.Oversold,
		promise.RedisRestart: verdict.Oversold, promise.RedisFailover: verdict.Oversold, promise.PrimaryPartition: verdict.Oversold,
	})
}
