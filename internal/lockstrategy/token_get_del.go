package lockstrategy

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

// tokenGetDel stores a token in the key, and compares it in the client before it deletes the key.
//
//   - Summary: token, compared by the client, then DEL
//   - Guarantees: Mutual exclusion per product while every critical section ends within the TTL. The
//     strategy rarely releases another holder's lock.
//   - Breaks when: the lease expires between GET and DEL; otherwise as `redis`
//   - How it breaks: It breaks as `redis` does. In addition, the check is not atomic. A reads its own
//     token with GET. Then A's lease expires, B takes the key, and A's DEL releases B's lock.
//   - Cost: One purchase takes three round trips to Redis.
//   - Source: Redis documentation, "Distributed Locks with Redis", section "Correct Implementation with a Single
//     Instance" (why the release is a script)
type tokenGetDel struct {
	redis redis.UniversalClient
	ttl   time.Duration
}

func newTokenGetDel(d Deps) purchase.Strategy {
	return rediskey.NewLocked(d, "token-get-del", tokenGetDel{d.Redis, d.Settings.LeaseTTL})
}

func (s tokenGetDel) Take(ctx context.Context, key, token string) (lease.Lease, error) {
	taken, err := s.redis.SetNX(ctx, key, token, s.ttl).Result()
	if err != nil || !taken {
		return nil, err
	}
	return rediskey.Held{Holder: token, Free: func(ctx context.Context) error {
		holder, err := s.redis.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) || err == nil && holder != token {
			return lease.ErrNotHeld
		}
		if err != nil {
			return err
		}
		return s.redis.Del(ctx, key).Err() // another buyer may hold it by now
	}}, nil
}

func tokenGetDelEntry() Entry {
	return Entry{
		Name: "token-get-del", Family: redisLocks,
		Needs: []Need{NeedsRedis},
		New:   newTokenGetDel,
		Traits: Traits{
			Witnesses: []WitnessSearch{{Flags: "--events expire --bound 1"}, {Suffix: "-releases-other", Flags: "--events expire --bound 2"}},
			Leased:    true,
			WaitsFor:  WaitLock,
			Lock:      LockPromise{FreesAnothers: true},
			CaughtBy:  map[string]string{"ExpiredLease": wantTwoHolders, "ReleaseRace": wantFreedAnother},
		},
	}.holdsExcept(leaseBreaks())
}
