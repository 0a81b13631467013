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

func setnxEntry() Entry {
	return Entry{
		Name: "setnx", Family: redisHistory,
		Summary:    "SETNX, DEL; no TTL",
		Guarantees: "one buyer of a product at a time, until somebody crashes",
		BreaksWhen: "holder crashes: locked for ever",
		HowItBreaks: "Step 1, A takes the key; step 2, A dies; from then on nobody can buy, until a person deletes the key. " +
			"The same happens when Redis hangs and the answer to the SETNX is lost.",
		Cost:   "two round trips to Redis",
		Source: `Redis documentation, SETNX, "Design pattern: Locking with SETNX" (the page itself calls the pattern discouraged)`,
		Needs:  []Need{NeedsRedis},
		New:    func(d Deps) purchase.Strategy { return NewSetNX(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: sizing.ByKey},
			WaitsFor: ALock,
			Lock:     LockPromise{FreesAnothers: true},
			CaughtBy: map[string]string{"HolderCrash": lockedForEver, "LostLease": freedAnother, "ReleaseRace": freedAnother},
		},
	}.holdsBut(promise.Promise{
		promise.Crash:            verdict.Stalled,
		promise.RedisRestart:     verdict.Oversold,
		promise.RedisFailover:    verdict.Oversold,
		promise.Partition:        verdict.Stalled, // it keeps the holder from its DEL
		promise.ClusterDown:      verdict.Stalled, // so does this
		promise.PrimaryPartition: verdict.Stalled, // and the elected replica has the key for ever
	})
}

// NewSetNX needs the database and one Redis.
func NewSetNX(d Deps) *Locked {
	return lease.NewLocked(d, "setnx", rediskey.NewLocker(d, "setnx", rediskey.Commands{
		Take: func(ctx context.Context, key string) (string, bool, error) {
			taken, err := d.Redis.SetNX(ctx, key, "1", 0).Result()
			return "", taken, err
		},
	}))
}
