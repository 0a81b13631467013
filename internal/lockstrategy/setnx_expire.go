package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
)

func setnxExpireEntry() Entry {
	return Entry{
		Name: "setnx-expire", Family: redisHistory,
		Summary:    "SETNX then EXPIRE, two commands",
		Guarantees: "one buyer of a product at a time, while nobody crashes between the two commands and every section ends within the TTL",
		BreaksWhen: "crash in between; section longer than the TTL",
		HowItBreaks: "Step 1, A sends SETNX; step 2, A dies before EXPIRE: locked for ever, as under setnx. " +
			"Or the section outlives the TTL: B comes in, A's DEL then frees B's lock, and C comes in as well.",
		Cost:   "three round trips to Redis",
		Source: `Redis documentation, SETNX, "Handling deadlocks"; SET has had NX and EX in one command since Redis 2.6.12 for this reason`,
		Needs:  []Need{NeedsRedis},
		New:    func(d Deps) purchase.Strategy { return NewSetNXExpire(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, Lock: 3, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 3, TurnCommits: 1, Nodes: sizing.ByKey},
			Leased:   true,
			WaitsFor: ALock,
			Lock:     LockPromise{FreesAnothers: true},
			// An explored crash may come between the two commands, before there is a TTL.
			// The fault strikes a holder that is in its section.
			ExploredAs: promise.Promise{promise.ExploreCrash: verdict.Stalled},
			CaughtBy: map[string]string{
				"HolderCrash": lockedForEver, "ExpiredLease": twoHolders, "LostLease": freedAnother, "ReleaseRace": freedAnother,
			},
		},
	}.holdsBut(leaseBreaks())
}

// NewSetNXExpire needs the database and one Redis.
func NewSetNXExpire(d Deps) *Locked {
	return lease.NewLocked(d, "setnx-expire", rediskey.NewLocker(d, "setnx-expire", rediskey.Commands{
		Take: func(ctx context.Context, key string) (string, bool, error) {
			taken, err := d.Redis.SetNX(ctx, key, "1", 0).Result()
			if err != nil || !taken {
				return "", false, err
			}
			return "", true, d.Redis.PExpire(ctx, key, d.Settings.LeaseTTL).Err()
		},
	}))
}
