package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/quorum"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

func redlockEntry() Entry {
	return Entry{
		Name: "redlock", Family: redisHistory,
		Summary: "majority of N independent nodes (go-redsync)",
		Guarantees: "one buyer of a product at a time, while the clocks of the nodes run alike and the section ends within the validity time; " +
			"it outlives the loss of a minority of the nodes. The lease's context ends with the validity time: the TTL less the time that the lock took and 1 % for drift",
		BreaksWhen:  "pause longer than the TTL; a node in the majority forgets; a clock jump",
		HowItBreaks: "A pause after the last check of the context and before the commit outlives the TTL. Or a node of the majority restarts empty. Or a node's clock jumps.",
		Cost: "a round trip to all nodes at once, twice a buy; two processes may split the votes, and both try again. " +
			"A node that does not answer in time is left out for a while",
		Source: `Redis documentation, "Distributed Locks with Redis", section "The Redlock Algorithm"; the lock is github.com/go-redsync/redsync. ` +
			`Against it: Kleppmann, "How to do distributed locking", 2016; for it: antirez, "Is Redlock safe?", 2016`,
		Needs:   []Need{NeedsRedlock},
		Scripts: redisscript.Redsync(),
		New:     func(d Deps) purchase.Strategy { return NewRedlock(d) },
		Traits: Traits{
			Path:      sizing.Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: sizing.AllAtOnce},
			Witnesses: []Witness{{Flags: "--events forget --first"}},
			Leased:    true,
			WaitsFor:  ALock,
			NotExplored: map[promise.Condition]string{
				promise.ExploreForget: "it takes two preemptions, and so minutes: shop explore redlock --events forget --bound 2",
			},
			CaughtBy: map[string]string{"ExpiredLease": twoHolders},
		},
	}.holdsBut(promise.Promise{
		promise.Pause: verdict.Oversold, promise.NodeRestart: verdict.Oversold, promise.ClockJump: verdict.Oversold,
	})
}

// NewRedlock needs the database and the Redlock nodes.
func NewRedlock(d Deps) *Locked {
	l := &redlockLocker{
		nodes: d.Redlock, pools: quorum.Nodes(d.Redlock, d.Settings.LeaseTTL/2, d.Now), ttl: d.Settings.LeaseTTL, poller: waiting.NewPoller(d),
	}
	return lease.NewLocked(d, "redlock", l)
}

type redlockLocker struct {
	nodes  []redis.UniversalClient
	pools  []redsyncredis.Pool
	ttl    time.Duration
	poller waiting.Poller
}

func redlockKey(product string) string { return "shop:lock:redlock:{" + product + "}" }

func (r *redlockLocker) Lock(ctx context.Context, product string) (lease.Lease, error) {
	mutex := redsync.New(r.pools...).NewMutex(redlockKey(product), redsync.WithExpiry(r.ttl))
	err := r.poller.Obtain(ctx, product, func() (bool, error) {
		// A buyer that hangs up between the nodes would leave its key behind on
		// some of them: a try always ends, at latest by redsync's own time-out.
		err := mutex.TryLockContext(context.WithoutCancel(ctx))
		return err == nil, r.tryError(err)
	})
	if err != nil {
		return nil, err
	}
	return &redlockLease{mutex, product, r.poller}, nil
}

// tryError is nil where another try may succeed: the lock is taken, or the
// votes were split. With a majority of the nodes down it cannot.
func (r *redlockLocker) tryError(err error) error {
	if down := countRedisErrors(err); down > len(r.nodes)/2 {
		return deps.Failed(deps.Redlock, fmt.Errorf("%d of %d nodes: %w", down, len(r.nodes), err))
	}
	return nil
}

// countRedisErrors counts the nodes that did not answer in redsync's joined errors.
func countRedisErrors(err error) int {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		n := 0
		for _, e := range joined.Unwrap() {
			n += countRedisErrors(e)
		}
		return n
	}
	var node *redsync.RedisError
	if errors.As(err, &node) {
		return 1
	}
	return 0
}

// Reset deletes the key on every node, of any holder. It is enough that a majority
// did: on the others the key runs out, and has no majority meanwhile.
func (r *redlockLocker) Reset(ctx context.Context, product string) error {
	ctx, cancel := context.WithTimeout(ctx, deps.ReleaseTimeout)
	defer cancel()
	answers := make(chan error, len(r.nodes))
	for _, node := range r.nodes {
		go func() { answers <- node.Del(ctx, redlockKey(product)).Err() }()
	}
	var errs []error
	for range r.nodes {
		errs = append(errs, <-answers)
	}
	return quorum.Majority(len(r.nodes), errs)
}

type redlockLease struct {
	mutex   *redsync.Mutex
	product string
	poller  waiting.Poller
}

func (l *redlockLease) Token() string { return l.mutex.Value() }

func (l *redlockLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, l.mutex.Until(), purchase.ErrLockLost)
}

func (l *redlockLease) Release(ctx context.Context) error {
	defer l.poller.Released(l.product)
	held, err := l.mutex.UnlockContext(ctx)
	switch {
	case held:
		return nil
	case countRedisErrors(err) > 0: // too few nodes answered to say
		return deps.Failed(deps.Redlock, err)
	}
	return lease.ErrNotHeld
}
