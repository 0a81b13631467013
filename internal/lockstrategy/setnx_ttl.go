package lockstrategy

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

// setNXTTL takes a key that nobody has, with a TTL in the same command, and deletes whatever
// key is there at the end.
//
//   - Summary: SET NX PX, blind DEL
//   - Guarantees: one buyer of a product at a time, while every section ends within the TTL
//   - Breaks when: section longer than the TTL, and then it frees others' locks
//   - How it breaks: Step 1, A takes the key; step 2, A's section outlives the TTL; step 3, B takes the key; step
//     4, A is done and deletes it, though it is B's; step 5, C takes the key beside B. One slow buyer breaks the
//     lock for all that follow.
//   - Cost: two round trips to Redis
//   - Source: Redis documentation, SET, "Patterns" (why the value should be a token that the release compares)
type setNXTTL struct {
	redis redis.UniversalClient
	ttl   time.Duration
}

func newSetNXTTL(d Deps) purchase.Strategy {
	return rediskey.NewLocked(d, "setnx-ttl", setNXTTL{d.Redis, d.Settings.LeaseTTL})
}

// Take is rediskey.Lock.Take.
func (s setNXTTL) Take(ctx context.Context, key, _ string) (lease.Lease, error) {
	taken, err := s.redis.SetNX(ctx, key, "1", s.ttl).Result()
	if err != nil || !taken {
		return nil, err
	}
	return rediskey.Held{Free: func(ctx context.Context) error { return s.redis.Del(ctx, key).Err() }}, nil
}

func setnxTTLEntry() Entry {
	return Entry{
		Name: "setnx-ttl", Family: redisHistory,
		Needs: []Need{NeedsRedis},
		New:   newSetNXTTL,
		Traits: Traits{
			Leased:   true,
			WaitsFor: ALock,
			Lock:     LockPromise{FreesAnothers: true},
			CaughtBy: map[string]string{"ExpiredLease": twoHolders, "LostLease": freedAnother, "ReleaseRace": freedAnother},
		},
	}.holdsBut(leaseBreaks())
}
