package lockstrategy

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/quorum"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

// redlock sets one key with a TTL on each of N independent nodes at once. A buyer has the lock for
// the rest of the TTL if a majority of the nodes took the key.
//
//   - Summary: majority of N independent nodes (go-redsync)
//   - Guarantees: Mutual exclusion per product while the clocks of the nodes run at the same rate and the
//     critical section ends within the validity time. The lock survives the loss of a minority of the
//     nodes. The context of the critical section ends with the validity time: the TTL minus the time to
//     take the lock and 1 % for clock drift.
//   - Breaks when: a pause outlasts the TTL; a node of the majority loses the key; a clock jumps
//   - How it breaks: A pause between the last check of the context and the commit outlasts the TTL. Or a node
//     that granted the lock restarts empty. Or the clock of a node jumps.
//   - Cost: One purchase takes two round trips, each to all nodes at once. Two processes may split the
//     votes, and both try again. A node that does not answer in time is skipped for a while.
//   - Source: Redis documentation, "Distributed Locks with Redis", section "The Redlock Algorithm"; the lock is
//     github.com/go-redsync/redsync. Against it: Kleppmann, "How to do distributed locking", 2016. In favor of
//     it: antirez, "Is Redlock safe?", 2016
type redlock struct {
	nodes []redis.UniversalClient
	pools []redsyncredis.Pool
	ttl   time.Duration
	now   func() time.Time
}

func newRedlock(d Deps) purchase.Strategy {
	ttl := d.Settings.LeaseTTL
	return lease.NewLocked(d, "redlock", waiting.NewPolling(d, redlock{d.Redlock, quorum.Nodes(d.Redlock, ttl/2, d.Now), ttl, d.Now}))
}

func redlockKey(product string) string { return "shop:lock:redlock:{" + product + "}" }

// Try implements waiting.Trier. It ends with redsync's own timeout, not with ctx. Otherwise a buyer that left
// between two nodes would leave its key on some of them.
func (r redlock) Try(ctx context.Context, product string) (lease.Lease, error) {
	mutex := redsync.New(r.pools...).NewMutex(redlockKey(product), redsync.WithExpiry(r.ttl))
	asked := r.now()
	err := mutex.TryLockContext(context.WithoutCancel(ctx))
	switch {
	case err == nil && r.now().Sub(asked) < r.ttl:
		return redlockLease{mutex}, nil
	case err == nil: // redsync has checked the machine's clock; this checks Deps.Now
		_, _ = mutex.UnlockContext(context.WithoutCancel(ctx)) // a vote that is not released expires
		if ctx.Err() == nil {
			return r.Try(ctx, product)
		}
	}
	if down, silent := quorum.Down(err); down-silent > len(r.nodes)/2 {
		return nil, deps.Failed(deps.Redlock, fmt.Errorf("%d of %d nodes: %w", down, len(r.nodes), err))
	}
	return nil, nil // another holder has the lock, the votes were split, or too few nodes answered in time
}

func (r redlock) Reset(ctx context.Context, product string) error {
	return quorum.Each(ctx, len(r.nodes), func(ctx context.Context, node int) error {
		return r.nodes[node].Del(ctx, redlockKey(product)).Err()
	})
}

type redlockLease struct{ mutex *redsync.Mutex }

func (l redlockLease) Token() string { return l.mutex.Value() }

func (l redlockLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, l.mutex.Until(), purchase.ErrLockLost)
}

func (l redlockLease) Release(ctx context.Context) error {
	held, err := l.mutex.UnlockContext(ctx)
	down, _ := quorum.Down(err)
	switch {
	case held:
		return nil
	case down > 0: // too few nodes answered
		return deps.Failed(deps.Redlock, err)
	}
	return lease.ErrNotHeld
}

func redlockEntry() Entry {
	return Entry{
		Name: "redlock", Family: redisLocks,
		Needs:   []Need{NeedsRedlock},
		Scripts: redisscript.Redsync(),
		New:     newRedlock,
		Traits: Traits{
			Witnesses: []WitnessSearch{
				{Flags: "--events forget --first"},
				{Suffix: "-delay-after-check", Flags: "--events expire --bound 1"},
			},
			Leased:     true,
			TimesVotes: true,
			WaitsFor:   WaitLock,
			NotExplored: map[promise.Condition]string{
				promise.ExploreForget: "the violation needs two preemptions, and that search takes minutes: shop explore redlock --events forget --bound 2",
			},
			CaughtBy: map[string]string{"ExpiredLease": wantTwoHolders},
		},
	}.holdsExcept(promise.Promise{
		promise.Pause: verdict.Oversold, promise.NodeRestart: verdict.Oversold, promise.ClockJump: verdict.Oversold,
	})
}
