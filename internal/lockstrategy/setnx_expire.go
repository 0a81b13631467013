package lockstrategy

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

// setNXExpire takes a free key, gives it a TTL with a second command, and deletes it.
//
//   - Summary: SETNX then EXPIRE, two commands
//   - Guarantees: Mutual exclusion per product while no holder crashes between the two commands and every
//     critical section ends within the TTL.
//   - Breaks when: the holder crashes between the commands; the section outlasts the TTL
//   - How it breaks: Step 1: A sends SETNX. Step 2: A crashes or gives up before EXPIRE, and the product
//     stays locked as with `setnx`. Or the section outlasts the TTL: B takes the lock, A's DEL then releases it, and C
//     takes it as well.
//   - Cost: One purchase takes three round trips to Redis.
//   - Source: Redis documentation, SETNX, "Handling deadlocks"; SET has had NX and EX in one command since Redis
//     2.6.12 for this reason
type setNXExpire struct {
	redis redis.UniversalClient
	ttl   time.Duration
}

func newSetNXExpire(d Deps) purchase.Strategy {
	return rediskey.NewLocked(d, "setnx-expire", setNXExpire{d.Redis, d.Settings.LeaseTTL})
}

func (s setNXExpire) Take(ctx context.Context, key, _ string) (lease.Lease, error) {
	taken, err := s.redis.SetNX(ctx, key, "1", 0).Result()
	if err != nil || !taken {
		return nil, err
	}
	s.redis.PExpire(ctx, key, s.ttl) // if it fails, this buyer still has the key, and its DEL follows
	return rediskey.Held{Free: func(ctx context.Context) error { return s.redis.Del(ctx, key).Err() }}, nil
}

func setnxExpireEntry() Entry {
	breaks := leaseBreaks()
	breaks[promise.ServerHang] = verdict.Stalled // Redis executes the SETNX of a buyer that has gone, so no EXPIRE follows
	return Entry{
		Name: "setnx-expire", Family: redisLocks,
		Needs: []Need{NeedsRedis},
		New:   newSetNXExpire,
		Traits: Traits{
			Leased:   true,
			WaitsFor: WaitLock,
			Lock:     LockPromise{FreesAnothers: true},
			// In an exploration (a search of all interleavings), the crash may come between the two commands,
			// before there is a TTL. The fault `crash`, in contrast, hits a holder inside its critical section.
			ExploredAs: promise.Promise{promise.ExploreCrash: verdict.Stalled},
			CaughtBy: map[string]string{
				"HolderCrash": wantLockedForEver, "ExpiredLease": wantTwoHolders, "LostLease": wantFreedAnother, "ReleaseRace": wantFreedAnother,
			},
		},
	}.holdsExcept(breaks)
}
