package lockstrategy

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

func getsetEntry() Entry {
	return Entry{
		Name: "getset", Family: redisHistory,
		Summary: "expiry in the value by the client's clock, taken over with GETSET",
		Guarantees: "one buyer of a product at a time, while all clients' clocks agree and every section ends within the TTL; " +
			"of two that take over at once, GETSET shows one that it came second",
		BreaksWhen: "clocks differ; section longer than the TTL; anybody's DEL",
		HowItBreaks: "B's clock runs ahead by the TTL: it takes over a lock that A holds. Or the section outlives the TTL. " +
			"And the buyer that came second has overwritten the time of the first. DEL asks nobody.",
		Cost:   "one to three round trips to take the lock, one to free it",
		Source: `Redis documentation, SETNX, "Handling deadlocks" (C1 to C5): a TTL from before Redis had one for this`,
		Needs:  []Need{NeedsRedis},
		New:    func(d Deps) purchase.Strategy { return NewGetSet(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: sizing.ByKey},
			Leased:   true,
			WaitsFor: ALock,
			Lock:     LockPromise{FreesAnothers: true},
			CaughtBy: map[string]string{"ExpiredLease": twoHolders, "LostLease": freedAnother, "ReleaseRace": freedAnother},
		},
	}.holdsBut(promise.Promise{ // as a lease, but for clock-jump: the lock server's clock has no say
		promise.Pause: verdict.Oversold, promise.SlowSection: verdict.Oversold, promise.Partition: verdict.Oversold,
		promise.RedisRestart: verdict.Oversold, promise.RedisFailover: verdict.Oversold, promise.PrimaryPartition: verdict.Oversold,
	})
}

// NewGetSet needs the database and one Redis. Its clock is Deps.Now.
func NewGetSet(d Deps) *Locked {
	clock := clientClock{d}
	return lease.NewLocked(d, "getset", rediskey.NewLocker(d, "getset", rediskey.Commands{Take: clock.takeOver}))
}

// clientClock decides by Deps.Now whether a lease is over.
type clientClock struct{ Deps }

// takeOver takes a key that is free or whose time is past.
func (c clientClock) takeOver(ctx context.Context, key string) (string, bool, error) {
	until := strconv.FormatInt(c.Now().Add(c.Settings.LeaseTTL).UnixMilli(), 10)
	if taken, err := c.Redis.SetNX(ctx, key, until, 0).Result(); err != nil || taken {
		return until, taken, err
	}
	seen, err := c.Redis.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", false, nil // freed meanwhile: another try
	}
	if err != nil || !c.past(seen) {
		return "", false, err
	}
	before, err := c.Redis.GetSet(ctx, key, until).Result()
	if errors.Is(err, redis.Nil) {
		return until, true, nil
	}
	return until, err == nil && c.past(before), err
}

// past reports whether a key's time is over.
func (c clientClock) past(value string) bool {
	until, err := strconv.ParseInt(value, 10, 64)
	return err == nil && until <= c.Now().UnixMilli()
}
