package lockstrategy

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/oversell/oversell/internal/engine/zookeeper"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/lockstrategy/zkline"
	"github.com/oversell/oversell/internal/purchase"
)

// zookeeperLock creates an ephemeral sequential node for each buyer. The buyer of the first node
// has the lock. Every other buyer watches the node just before its own.
//
//   - Summary: ephemeral sequential node (go-zookeeper/zk)
//   - Guarantees: Mutual exclusion per product while the session lives. Buyers get the lock in order of
//     arrival, across processes. A crashed process releases the lock when its session ends. When
//     the connection breaks, the context of the critical section ends, since the session may expire unnoticed.
//   - Breaks when: a pause outlasts the session
//   - How it breaks: A pause between the last check of the context and the commit outlasts the session. The
//     session belongs to the process, so the process loses all its locks at once.
//   - Cost: One purchase takes two writes to ZooKeeper's log: the node and its deletion. A short loss of
//     the connection ends the sales in progress.
//   - Source: ZooKeeper documentation, "ZooKeeper Recipes and Solutions", Locks; Hunt et al., "ZooKeeper:
//     Wait-free coordination for Internet-scale systems", USENIX ATC 2010, 2.4. The client is
//     github.com/go-zookeeper/zk. Its own Lock takes no context and leaves its node in the queue when the
//     connection breaks at the wrong time
type zookeeperLock struct {
	session  *zookeeper.Session
	notified waiting.Notified
}

// newZookeeper returns the strategy. The lock of a crashed holder is released after the timeout of its session.
func newZookeeper(d Deps) purchase.Strategy {
	return lease.NewLocked(d, "zookeeper", newZookeeperLock(d))
}

func newZookeeperLock(d Deps) zookeeperLock {
	return zookeeperLock{d.Zookeeper, waiting.NewNotified(1)} // the next buyer creates its node while the holder sells
}

func (z zookeeperLock) Lock(ctx context.Context, product string) (lease.Lease, error) {
	return z.notified.Obtain(ctx, product, func() (lease.Lease, error) {
		held, err := z.queue(ctx, zkline.Of(z.session, product))
		return held, deps.Failed(deps.Zookeeper, err)
	})
}

// queue waits once in the product's queue of nodes in ZooKeeper. After an error it leaves no node behind.
func (z zookeeperLock) queue(ctx context.Context, line zkline.Line) (_ lease.Lease, err error) {
	place, err := line.Join()
	defer func() {
		if err != nil {
			place.Leave()
		}
	}()
	if err != nil {
		return nil, err
	}
	for {
		lost := z.session.Doubt() // requested before the node is looked up, so that a loss after the look-up is noticed
		ahead, err := place.Ahead()
		if err != nil {
			return nil, err
		}
		if ahead == "" {
			return zookeeperLease{place, lost}, nil
		}
		gone, err := place.Gone(ahead)
		if err != nil {
			return nil, err
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Reset deletes every node of the queue, of any buyer.
func (z zookeeperLock) Reset(ctx context.Context, product string) error {
	done := make(chan error, 1)
	go func() { done <- zkline.Of(z.session, product).Clear() }()
	return deps.Failed(deps.Zookeeper, zkline.Await(ctx, done))
}

// zookeeperLease is the first place in the queue. It is lost when the connection breaks, since the
// session may then end unnoticed.
type zookeeperLease struct {
	place *zkline.Place
	lost  <-chan struct{}
}

func (l zookeeperLease) Token() string { return l.place.Token }

func (l zookeeperLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return lease.UntilLost(ctx, l.lost)
}

func (l zookeeperLease) Release(ctx context.Context) error {
	err := zkline.Await(ctx, l.place.Leave())
	if errors.Is(err, zk.ErrNoNode) {
		return lease.ErrNotHeld
	}
	return deps.Failed(deps.Zookeeper, err)
}

func zookeeperEntry() Entry {
	return Entry{
		Name: "zookeeper", Family: coordination,
		Needs: []Need{NeedsZookeeper},
		New:   newZookeeper,
		Traits: Traits{
			Leased:   true,
			WaitsFor: WaitLock,
			Lock:     LockPromise{Renewed: true, SharedUnder: []promise.Condition{promise.LeaseRevoked}},
			CaughtBy: map[string]string{"ExpiredLease": wantTwoHolders},
		},
	}.holdsExcept(promise.Promise{promise.Pause: verdict.Oversold})
}
