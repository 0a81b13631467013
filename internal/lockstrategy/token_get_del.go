package lockstrategy

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

func tokenGetDelEntry() Entry {
	return Entry{
		Name: "token-get-del", Family: redisHistory,
		Summary:     "token, compared by the client, then DEL",
		Guarantees:  "one buyer of a product at a time, while every section ends within the TTL; it almost never frees the lock of another",
		BreaksWhen:  "the lease expires between GET and DEL; as redis",
		HowItBreaks: "As redis. And the check is not atomic: step 1, A reads its own token with GET; step 2, the lease runs out; step 3, B takes the key; step 4, A sends DEL.",
		Cost:        "three round trips to Redis",
		Source:      `Redis documentation, "Distributed Locks with Redis", section "Correct Implementation with a Single Instance": why the release is a script`,
		Needs:       []Need{NeedsRedis},
		New:         func(d Deps) purchase.Strategy { return NewTokenGetDel(d) },
		Traits: Traits{
			Path:      sizing.Path{SQL: 5, Lock: 3, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 3, TurnCommits: 1, Nodes: sizing.ByKey},
			Witnesses: []Witness{{Flags: "--events expire --bound 1"}, {Suffix: "-foreign", Flags: "--events expire --bound 2"}},
			Leased:    true,
			WaitsFor:  ALock,
			Lock:      LockPromise{FreesAnothers: true},
			CaughtBy:  map[string]string{"ExpiredLease": twoHolders, "ReleaseRace": freedAnother},
		},
	}.holdsBut(leaseBreaks())
}

// NewTokenGetDel needs the database and one Redis.
func NewTokenGetDel(d Deps) *Locked {
	return lease.NewLocked(d, "token-get-del", rediskey.NewLocker(d, "token-get-del", rediskey.Commands{
		Take: func(ctx context.Context, key string) (string, bool, error) {
			token := rand.Text()
			taken, err := d.Redis.SetNX(ctx, key, token, d.Settings.LeaseTTL).Result()
			return token, taken, err
		},
		Free: func(ctx context.Context, key, token string) error {
			held, err := d.Redis.Get(ctx, key).Result()
			if errors.Is(err, redis.Nil) || (err == nil && held != token) {
				return lease.ErrNotHeld
			}
			if err != nil {
				return deps.Failed(deps.Redis, err)
			}
			return deps.Failed(deps.Redis, d.Redis.Del(ctx, key).Err()) // whose it is by now
		},
	}))
}
