package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

func setnxTTLEntry() Entry {
	return Entry{
		Name: "setnx-ttl", Family: redisHistory,
		Summary:    "SET NX PX, blind DEL",
		Guarantees: "one buyer of a product at a time, while every section ends within the TTL",
		BreaksWhen: "section longer than the TTL, and then it frees others' locks",
		HowItBreaks: "Step 1, A takes the key; step 2, A's section outlives the TTL; step 3, B takes the key; step 4, A is done and deletes it, though it is B's; " +
			"step 5, C takes the key beside B. One slow buyer breaks the lock for all that follow.",
		Cost:   "two round trips to Redis",
		Source: `Redis documentation, SET, "Patterns" (why the value should be a token that the release compares)`,
		Needs:  []Need{NeedsRedis},
		New:    func(d Deps) purchase.Strategy { return NewSetNXTTL(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: sizing.ByKey},
			Leased:   true,
			WaitsFor: ALock,
			Lock:     LockPromise{FreesAnothers: true},
			CaughtBy: map[string]string{"ExpiredLease": twoHolders, "LostLease": freedAnother, "ReleaseRace": freedAnother},
		},
	}.holdsBut(leaseBreaks())
}

// NewSetNXTTL needs the database and one Redis.
func NewSetNXTTL(d Deps) *Locked {
	return lease.NewLocked(d, "setnx-ttl", rediskey.NewLocker(d, "setnx-ttl", rediskey.Commands{
		Take: func(ctx context.Context, key string) (string, bool, error) {
			taken, err := d.Redis.SetNX(ctx, key, "1", d.Settings.LeaseTTL).Result()
			return "", taken, err
		},
	}))
}
