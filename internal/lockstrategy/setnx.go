package lockstrategy

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

// setNX takes a free key and deletes it. The key never expires.
//
//   - Summary: SETNX, DEL; no TTL
//   - Guarantees: Mutual exclusion per product until a holder crashes.
//   - Breaks when: the holder crashes: the product stays locked
//   - How it breaks: Step 1: A takes the key. Step 2: A crashes. From then on no buyer can buy, until a person
//     deletes the key. The same happens if Redis hangs and the answer to the SETNX is lost, or the DEL is lost.
//   - Cost: One purchase takes two round trips to Redis.
//   - Source: Redis documentation, SETNX, "Design pattern: Locking with SETNX" (the page itself discourages the
//     pattern)
type setNX struct{ redis redis.UniversalClient }

func newSetNX(d Deps) purchase.Strategy { return rediskey.NewLocked(d, "setnx", setNX{d.Redis}) }

func (s setNX) Take(ctx context.Context, key, _ string) (lease.Lease, error) {
	taken, err := s.redis.SetNX(ctx, key, "1", 0).Result()
	if err != nil || !taken {
		return nil, err
	}
	return rediskey.Held{Free: func(ctx context.Context) error { return s.redis.Del(ctx, key).Err() }}, nil
}

func setnxEntry() Entry {
	return Entry{
		Name: "setnx", Family: redisLocks,
		Needs: []Need{NeedsRedis},
		New:   newSetNX,
		Traits: Traits{
			WaitsFor: WaitLock,
			Lock:     LockPromise{FreesAnothers: true},
			CaughtBy: map[string]string{"HolderCrash": wantLockedForEver, "LostLease": wantFreedAnother, "ReleaseRace": wantFreedAnother},
		},
	}.holdsExcept(promise.Promise{
		promise.Crash:            verdict.Stalled,
		promise.RedisRestart:     verdict.Oversold,
		promise.RedisFailover:    verdict.Oversold,
		promise.Partition:        verdict.Stalled, // the holder cannot send its DEL
		promise.ReleaseCut:       verdict.Stalled, // the DEL does not reach Redis
		promise.ServerHang:       verdict.Stalled, // Redis executes the SETNX of a buyer that has gone
		promise.ClusterDown:      verdict.Stalled, // the holder cannot send its DEL
		promise.PrimaryPartition: verdict.Stalled, // the elected replica keeps the key permanently
	})
}
