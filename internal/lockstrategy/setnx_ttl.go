package lockstrategy

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

// setNXTTL takes a free key with a TTL in the same command. At the end it deletes the key, even if
// another buyer holds it by then.
//
//   - Summary: SET NX with a TTL, unconditional DEL
//   - Guarantees: Mutual exclusion per product while every critical section ends within the TTL.
//   - Breaks when: the section outlasts the TTL, and its DEL releases another holder's lock
//   - How it breaks: Step 1: A takes the key. Step 2: A's section outlasts the TTL. Step 3: B takes the key
//     and reads the same stock. Step 4: A writes late, and the unit is sold twice. Step 5: A also deletes
//     the key, although B holds it, so C takes it while B works.
//   - Cost: One purchase takes two round trips to Redis.
//   - Source: Redis documentation, SET, "Patterns" (why the value should be a token that the release compares)
type setNXTTL struct {
	redis redis.UniversalClient
	ttl   time.Duration
}

func newSetNXTTL(d Deps) purchase.Strategy {
	return rediskey.NewLocked(d, "setnx-ttl", setNXTTL{d.Redis, d.Settings.LeaseTTL})
}

func (s setNXTTL) Take(ctx context.Context, key, _ string) (lease.Lease, error) {
	taken, err := s.redis.SetNX(ctx, key, "1", s.ttl).Result()
	if err != nil || !taken {
		return nil, err
	}
	return rediskey.Held{Free: func(ctx context.Context) error { return s.redis.Del(ctx, key).Err() }}, nil
}

func setnxTTLEntry() Entry {
	return Entry{
		Name: "setnx-ttl", Family: redisLocks,
		Needs: []Need{NeedsRedis},
		New:   newSetNXTTL,
		Traits: Traits{
			Witnesses: []WitnessSearch{{Flags: "--events expire --bound 1"}, {Suffix: "-releases-other", Flags: "--events expire --bound 2"}},
			Leased:    true,
			WaitsFor:  WaitLock,
			Lock:      LockPromise{FreesAnothers: true},
			CaughtBy:  map[string]string{"ExpiredLease": wantTwoHolders, "LostLease": wantFreedAnother, "ReleaseRace": wantFreedAnother},
		},
	}.holdsExcept(leaseBreaks())
}
